/**
 * Geo: sorted sets whose scores are geohashes. GEOADD GEOPOS GEODIST GEOHASH; searches are in geo-search.
 *
 * Invariant: what GEOADD stores is what ZADD would store with the score of the place; any sorted set can be asked for places.
 */
import { blockArg, doubleArg, keyArg, oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, SYNTAX } from '../errors.js';
import { Add, addMember, notifyAdded, Outcome } from '../sorted-sets/sorted-set.js';
import { findMember, openSortedSet, openSortedSetToRead } from '../sorted-sets/sorted-set-members.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { distance } from './geo-area.js';
import { given, MEMBERS, readPlace, readUnit, replyDistance, replyPlace, UNITS } from './geo-arguments.js';
import { decode, geohashString, place, scoreOf } from './geohash.js';

/** Longitude, latitude, member. */
const TRIPLE = 3;

function geoAdd(context: Context): void {
  const { reply, argc } = context;
  let options = 0;
  let first = 2;
  for (; first < argc; first++) {
    if (context.argIs(first, 'NX')) options |= Add.NX;
    else if (context.argIs(first, 'XX')) options |= Add.XX;
    else if (context.argIs(first, 'CH')) options |= Add.CH;
    else break;
  }
  const isContradiction = (options & Add.NX) !== 0 && (options & Add.XX) !== 0;
  if (first === argc || (argc - first) % TRIPLE !== 0 || isContradiction) return reply.error(SYNTAX);
  for (let i = first; i < argc; i += TRIPLE) if (!readPlace(context, i)) return;
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  let added = 0;
  let updated = 0;
  for (let i = first; i < argc; i += TRIPLE) {
    readPlace(context, i);
    const outcome = addMember(context, set, options, scoreOf(given.longitude, given.latitude), i + 2);
    if (outcome === Outcome.NO_MEMORY) {
      notifyAdded(context, options, added + updated);
      return reply.error(NO_MEMORY);
    }
    if (outcome === Outcome.ADDED) added++;
    if (outcome === Outcome.UPDATED) updated++;
  }
  notifyAdded(context, options, added + updated);
  reply.integer((options & Add.CH) !== 0 ? added + updated : added);
}

function geoPos(context: Context): void {
  const { reply } = context;
  const set = openSortedSetToRead(context);
  if (set === null) return;
  reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    if (findMember(context, set, i)) {
      decode(set.score);
      replyPlace(context, place.longitude, place.latitude);
    } else {
      reply.nilArray();
    }
  }
}

function geoHash(context: Context): void {
  const { reply } = context;
  const set = openSortedSetToRead(context);
  if (set === null) return;
  reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    if (findMember(context, set, i)) {
      decode(set.score);
      reply.bulkString(geohashString(place.longitude, place.latitude));
    } else {
      reply.nil();
    }
  }
}

function geoDist(context: Context): void {
  const { reply, argc } = context;
  let metresPerUnit = 1;
  if (argc === 5) {
    metresPerUnit = readUnit(context, 4);
    if (metresPerUnit < 0) return;
  } else if (argc > 5) {
    return reply.error(SYNTAX);
  }
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (!findMember(context, set, 2)) return reply.nil();
  decode(set.score);
  const { longitude, latitude } = place;
  if (!findMember(context, set, 3)) return reply.nil();
  decode(set.score);
  replyDistance(context, distance(longitude, latitude, place.longitude, place.latitude) / metresPerUnit);
}

const KEY = keyArg('key');
const COMMON = { categories: Category.GEO, group: 'geo', since: '3.2.0' } as const;
const READ = { ...COMMON, flags: Flag.READONLY, keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)] } as const;

export const geo: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'geoadd',
    arity: -5,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Adds members with their places to a sorted set, or moves them.',
    complexity: 'O(log(N)) for each member, N being the members of the sorted set',
    history: [['6.2.0', 'The options CH, NX and XX.']],
    args: [
      KEY,
      oneOf('condition', [tokenArg('NX'), tokenArg('XX')], { optional: true, since: '6.2.0' }),
      tokenArg('CH', { optional: true, since: '6.2.0' }),
      blockArg('data', [doubleArg('longitude'), doubleArg('latitude'), stringArg('member')], { multiple: true }),
    ],
    repeatable: true,
    run: geoAdd,
  },
  {
    ...READ,
    name: 'geopos',
    arity: -2,
    summary: 'Returns longitudes and latitudes of members.',
    complexity: 'O(M*log(N)) for M members asked for of N',
    args: [KEY, { ...MEMBERS, optional: true }],
    run: geoPos,
  },
  {
    ...READ,
    name: 'geodist',
    arity: -4,
    summary: 'Returns the distance between two members.',
    complexity: 'O(log(N)) for N members of the sorted set',
    args: [KEY, stringArg('member1'), stringArg('member2'), oneOf('unit', UNITS, { optional: true })],
    run: geoDist,
  },
  {
    ...READ,
    name: 'geohash',
    arity: -2,
    summary: 'Returns the places of members as geohash strings of eleven characters.',
    complexity: 'O(M*log(N)) for M members asked for of N',
    args: [KEY, { ...MEMBERS, optional: true }],
    run: geoHash,
  },
];
