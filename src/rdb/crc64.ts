/**
 * CRC-64 as Redis checks its payloads: the Jones polynomial, reflected, initial value and final xor 0.
 *
 * Test vector: '123456789' -> 0xe9c6d914c4b8d9ca. Eight bytes at a time, by eight tables of 32-bit halves: BigInt would cost more than all
 * the rest. Invariant: feeding bytes in parts gives what feeding them at once does.
 */

const POLYNOMIAL_HIGH = 0x95ac9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;
const STEP_BYTES = 8;

/** Table t, entry b at t * 256 + b: what byte b comes to with t zero bytes behind it. */
const highs = new Int32Array(STEP_BYTES * 256);
const lows = new Int32Array(STEP_BYTES * 256);

for (let i = 0; i < 256; i++) {
  let high = 0;
  let low = i;
  for (let bit = 0; bit < 8; bit++) {
    const carries = (low & 1) !== 0;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (carries) {
      high ^= POLYNOMIAL_HIGH;
      low ^= POLYNOMIAL_LOW;
    }
  }
  highs[i] = high;
  lows[i] = low;
}
for (let i = 256; i < STEP_BYTES * 256; i++) {
  const high = highs[i - 256];
  const low = lows[i - 256];
  const index = low & 0xff;
  lows[i] = ((low >>> 8) | (high << 24)) ^ lows[index];
  highs[i] = (high >>> 8) ^ highs[index];
}

export class Crc64 {
  /** The value so far, as signed halves. */
  high = 0;
  low = 0;

  reset(): void {
    this.high = 0;
    this.low = 0;
  }

  update(u8: Uint8Array, from: number, end: number): void {
    let { high, low } = this;
    let i = from;
    for (const last = end - STEP_BYTES; i <= last; i += STEP_BYTES) {
      const a = low ^ (u8[i] | (u8[i + 1] << 8) | (u8[i + 2] << 16) | (u8[i + 3] << 24));
      const b = high ^ (u8[i + 4] | (u8[i + 5] << 8) | (u8[i + 6] << 16) | (u8[i + 7] << 24));
      const t7 = 1792 + (a & 0xff);
      const t6 = 1536 + ((a >>> 8) & 0xff);
      const t5 = 1280 + ((a >>> 16) & 0xff);
      const t4 = 1024 + (a >>> 24);
      const t3 = 768 + (b & 0xff);
      const t2 = 512 + ((b >>> 8) & 0xff);
      const t1 = 256 + ((b >>> 16) & 0xff);
      const t0 = b >>> 24;
      low = lows[t7] ^ lows[t6] ^ lows[t5] ^ lows[t4] ^ lows[t3] ^ lows[t2] ^ lows[t1] ^ lows[t0];
      high = highs[t7] ^ highs[t6] ^ highs[t5] ^ highs[t4] ^ highs[t3] ^ highs[t2] ^ highs[t1] ^ highs[t0];
    }
    for (; i < end; i++) {
      const index = (low ^ u8[i]) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ lows[index];
      high = (high >>> 8) ^ highs[index];
    }
    this.high = high;
    this.low = low;
  }

  /** Writes the value as it stands behind payloads. */
  writeTo(view: DataView, offset: number): void {
    view.setInt32(offset, this.low, true);
    view.setInt32(offset + 4, this.high, true);
  }

  /** True when these eight bytes are the value. */
  equals(view: DataView, offset: number): boolean {
    return view.getInt32(offset, true) === this.low && view.getInt32(offset + 4, true) === this.high;
  }
}
