/**
 * CRC-64 as Redis checks its payloads: the Jones polynomial, reflected, initial value and final xor 0.
 *
 * Test vector: '123456789' -> 0xe9c6d914c4b8d9ca. For payloads of commands, not for hot paths: it works on 32-bit halves.
 */

const POLYNOMIAL_HIGH = 0x95ac9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;

const highs = new Int32Array(256);
const lows = new Int32Array(256);
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

export function crc64(bytes: Uint8Array): bigint {
  let high = 0;
  let low = 0;
  for (const byte of bytes) {
    const index = (low ^ byte) & 0xff;
    low = ((low >>> 8) | (high << 24)) ^ lows[index];
    high = (high >>> 8) ^ highs[index];
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
