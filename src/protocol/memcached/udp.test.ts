import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DATAGRAM_BYTES,
  datagramCount,
  FRAME_BYTES,
  frameReply,
  isSingleDatagram,
  MAX_REPLY_BYTES,
  requestId,
} from './udp.js';

describe('UDP frames', () => {
  it('reads the worked example', () => {
    const frame = Uint8Array.of(0x12, 0x34, 0, 0, 0, 1, 0, 0);
    expect(requestId(frame, 0)).toBe(0x1234);
    expect(isSingleDatagram(frame, 0)).toBe(true);
    expect(isSingleDatagram(Uint8Array.of(0x12, 0x34, 0, 1, 0, 2, 0, 0), 0)).toBe(false);
  });

  it('spreads a reply over datagrams that give it back in order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: MAX_REPLY_BYTES }), fc.nat(65535), fc.nat(100), (bytes, id, base) => {
        const u8 = new Uint8Array(base + bytes + datagramCount(bytes) * FRAME_BYTES);
        for (let i = 0; i < bytes; i++) u8[base + i] = i * 31 + (i >> 8);
        const payload = u8.slice(base, base + bytes);
        const total = frameReply(u8, base, bytes, id);
        const parts: Uint8Array[] = [];
        for (let at = 0, i = 0; at < total; at += DATAGRAM_BYTES, i++) {
          const datagram = u8.subarray(base + at, base + Math.min(at + DATAGRAM_BYTES, total));
          expect(requestId(datagram, 0)).toBe(id);
          expect(Array.from(datagram.subarray(2, 8))).toEqual([i >> 8, i & 255, 0, datagramCount(bytes), 0, 0]);
          parts.push(datagram.subarray(FRAME_BYTES));
        }
        expect(Buffer.concat(parts).equals(payload)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});
