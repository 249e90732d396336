/**
 * Random values and random bytes through the libraries of scripts and the conversion of replies, against redis-server.
 *
 * Values are scalars, arrays and maps of one entry (the order of more is the hash table's); bytes are noise and changed encodings.
 * Both servers must answer the same, errors included. FUZZ_RUNS sets the number of requests of a kind; a failure shows the request.
 */
import { it } from 'vitest';
import { random } from '../fuzz/mutate.js';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 300);

type Draw = (limit: number) => number;

const NUMBERS = [
  '0',
  '-1',
  '1.5',
  '-0.25',
  '127',
  '128',
  '-33',
  '65536',
  '4294967296',
  '-2147483649',
  '2^53',
  '1e15',
  '0.1',
];

function pick(draw: Draw, from: readonly string[]): string {
  return from[draw(from.length)];
}

function text(draw: Draw): string {
  let escaped = '';
  for (let i = draw(12); i > 0; i--) escaped += `\\${String(draw(256)).padStart(3, '0')}`;
  return `"${escaped}"`;
}

/** A Lua expression. */
function value(draw: Draw, depth: number): string {
  const kind = draw(depth > 3 ? 4 : 7);
  if (kind === 0) return pick(draw, NUMBERS);
  if (kind === 1) return text(draw);
  if (kind === 2) return pick(draw, ['true', 'false', 'cjson.null']);
  if (kind === 3) return String(draw(1_000_000) - 500_000);
  if (kind === 4) return `{[${text(draw)}]=${value(draw, depth + 1)}}`;
  return `{${Array.from({ length: draw(5) }, () => value(draw, depth + 1)).join(',')}}`;
}

function bytes(draw: Draw, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => draw(256)));
}

function noise(draw: Draw, alphabet: string): string {
  return Array.from({ length: 1 + draw(24) }, () => alphabet[draw(alphabet.length)]).join('');
}

/** `make` gives the words after EVAL. */
function steps(seed: number, make: (draw: Draw) => readonly (string | Uint8Array)[]): Step[] {
  const draw = random(seed);
  return Array.from({ length: RUNS }, () => ['EVAL', ...make(draw)]);
}

describeWithRedis('scripts, random', (peers) => {
  it('values become replies', () => peers.compare(steps(1, (draw) => [`return ${value(draw, 0)}`, '0'])));

  it('values go through cjson and back', () =>
    peers.compare(
      steps(2, (draw) => [
        `local v=${value(draw, 0)} local s=cjson.encode(v) return {s,cjson.encode(cjson.decode(s))}`,
        '0',
      ]),
    ));

  it('values go through cmsgpack and back', () =>
    peers.compare(
      steps(3, (draw) => [
        `local s=cmsgpack.pack(${value(draw, 0)}) return {s,cmsgpack.pack(cmsgpack.unpack(s))}`,
        '0',
      ]),
    ));

  it('noise for cjson.decode', () =>
    peers.compare(
      steps(4, (draw) => [
        'return cjson.encode({cjson.decode(ARGV[1])})',
        '0',
        noise(draw, '[]{}:,"\\u0123e+-. ntfx/\n'),
      ]),
    ));

  it('noise for cmsgpack.unpack', () =>
    peers.compare(
      steps(5, (draw) => [
        'local r={cmsgpack.unpack(ARGV[1])} local t={} for i=1,#r do t[i]=cmsgpack.pack(r[i]):sub(1,50) end return t',
        '0',
        bytes(draw, 1 + draw(20)),
      ]),
    ));

  it('random formats for struct', () =>
    peers.compare(
      steps(6, (draw) => [
        'local r={struct.unpack(ARGV[1],ARGV[2])} for i=1,#r do r[i]=tostring(r[i]) end return r',
        '0',
        noise(draw, '<>!1248bBhHlLTiIfdsxc0 '),
        bytes(draw, draw(40)),
      ]),
    ));

  it('random formats for struct.size and struct.pack', () =>
    peers.compare(
      steps(7, (draw) => [
        'local ok,n=pcall(struct.size,ARGV[1]) return {tostring(n),struct.pack(ARGV[1],1,-2,300,7,8,9,10,11,12,13,14,15,16)}',
        '0',
        noise(draw, '<>!248bBhHlLiIfdx '),
      ]),
    ));
});
