import { isIP as nodeIsIP, isIPv4 as nodeIsIPv4 } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isIP, isIPv4 } from './address.js';

const SOME = [
  '127.0.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '256.0.0.1',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '1.2.3.4.',
  '',
  '*',
  'localhost',
  '::',
  '::1',
  '1::',
  'fe80::1%eth0',
  'fe80::1%',
  '::ffff:127.0.0.1',
  '::ffff:1.2.3',
  '1:2:3:4:5:6:7:8',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1::2::3',
  '12345::',
  'g::1',
  '[::1]',
  '::1/64',
  '::1 ',
  ' ::1',
  '1.2.3.4 ',
  '::1]:80/[::',
  '2001:DB8::A',
];

it('agrees with node:net', () => {
  for (const text of SOME) {
    expect(isIP(text), text).toBe(nodeIsIP(text) !== 0);
    expect(isIPv4(text), text).toBe(nodeIsIPv4(text));
  }
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ unit: fc.constantFrom(...'0123456789abcf:.%') }));
  fc.assert(fc.property(address, (text) => isIP(text) === (nodeIsIP(text) !== 0) && isIPv4(text) === nodeIsIPv4(text)));
});
