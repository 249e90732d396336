/**
 * HyperLogLog against a real redis-server: the same elements give the same bytes and the same estimates.
 */
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

/** Reproducible elements of many lengths. */
function elements(count: number, seed: number): string[] {
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
  return Array.from({ length: count }, () => {
    const length = next() % 40;
    return Array.from({ length }, () => String.fromCharCode(next() >>> 24)).join('');
  });
}

const HEADER = 'HYLL\x01\0\0\0';
const STALE = '\0\0\0\0\0\0\0\x80';

describeWithRedis('HyperLogLog', (peers) => {
  it('grows through sparse and dense with the same bytes', () => {
    const steps: Step[] = [];
    for (let round = 0; round < 30; round++) {
      const some = elements(round < 15 ? round * 5 : 400, round + 1);
      steps.push(['PFADD', 'h', ...some], ['GET', 'h'], 'PFCOUNT h', ['GET', 'h'], 'PFDEBUG ENCODING h', 'STRLEN h');
    }
    steps.push('PFDEBUG GETREG h', 'PFADD h', 'OBJECT ENCODING h');
    return peers.compare(steps);
  });

  it('one element at a time', () =>
    peers.compare(elements(700, 77).flatMap((element): Step[] => [['PFADD', 'one', element], 'PFDEBUG DECODE one'])));

  it('keeps the expiry', () =>
    peers.compare(['PFADD t a', 'EXPIRE t 100', 'PFADD t b', 'TTL t', 'PFDEBUG TODENSE t', 'PFADD t c', 'TTL t']));

  it('hll-sparse-max-bytes', () =>
    peers.compare([
      'CONFIG SET hll-sparse-max-bytes 30',
      ...elements(20, 5).flatMap((element): Step[] => [
        ['PFADD', 's', element],
        ['GET', 's'],
      ]),
      'CONFIG SET hll-sparse-max-bytes 3000',
    ]));

  it('merges and unions', () =>
    peers.compare([
      ['PFADD', 'a', ...elements(50, 1)],
      ['PFADD', 'b', ...elements(80, 2)],
      ['PFADD', 'c', ...elements(900, 3)],
      ['PFADD', 'd', ...elements(900, 4), ...elements(900, 5), ...elements(900, 6)],
      'PFCOUNT a b c d nothing',
      'PFCOUNT a b',
      'PFMERGE ab a b nothing',
      'GET ab',
      'PFCOUNT ab',
      'PFMERGE a b',
      'GET a',
      'PFMERGE a d',
      'GET a',
      'PFDEBUG ENCODING a',
      'PFMERGE empty',
      'GET empty',
      'PFMERGE d c b',
      'GET d',
      'PFCOUNT d a',
    ]));

  it('refuses what is none', () =>
    peers.compare([
      'SET plain hello',
      'PFADD plain a',
      'PFCOUNT plain',
      'PFCOUNT plain nothing',
      'PFMERGE plain',
      'PFMERGE to plain',
      'SET number 12345',
      'PFADD number a',
      ['SET', 'short', 'HYLL'],
      'PFCOUNT short',
      ['SET', 'version', `HYLL\x02\0\0\0${STALE}`],
      'PFCOUNT version',
      ['SET', 'dense', `HYLL\0\0\0\0${STALE}short`],
      'PFCOUNT dense',
      'PFDEBUG ENCODING nothing',
      'PFDEBUG WHAT plain',
      'PFDEBUG ENCODING',
      'PFADD',
      'EXISTS to nothing',
    ]));

  it('refuses corrupted runs', () =>
    peers.compare([
      ['SET', 'few', `${HEADER}${STALE}\x7f\xf0`],
      'PFCOUNT few',
      'PFCOUNT few few',
      'PFMERGE to few',
      ['SET', 'none', `${HEADER}${STALE}`],
      'PFCOUNT none',
      ['SET', 'many', `${HEADER}${STALE}\x7f\xff\xff\xff`],
      'PFCOUNT many',
      'PFMERGE to many',
      ['SET', 'cached', `${HEADER}\x05\0\0\0\0\0\0\0\x7f\xff`],
      'PFCOUNT cached',
      ['SET', 'huge', `${HEADER}\xff\xff\xff\xff\xff\xff\xff\x7f\x7f\xff`],
      'PFCOUNT huge',
    ]));
});
