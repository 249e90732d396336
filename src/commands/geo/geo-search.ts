/**
 * Geo searches: GEOSEARCH GEOSEARCHSTORE, and the older GEORADIUS GEORADIUSBYMEMBER with their _RO forms.
 *
 * What is found is gathered beside the store with scores and distances, so that it can be put in order, and the destination may be the
 * source. Invariant: the request is read to its end before anything is searched; without ASC or DESC members come in the order in which the
 * ranges of scores are searched, which is Redis's.
 */
import { Bound, type Collection } from '../../store/collections/collection.js';
import { blockArg, doubleArg, integerArg, keyArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { members } from '../sets/member-table.js';
import { findMember, openSortedSet } from '../sorted-sets/sorted-set-members.js';
import { result, storeResult } from '../sorted-sets/sorted-set-result.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keyBehind } from '../spec.js';
import { area, coveringRanges, distanceWithin } from './geo-area.js';
import { given, readBox, readCircle, readPlace, replyDistance, replyPlace, UNITS } from './geo-arguments.js';
import { decode, place } from './geohash.js';

const NO_MEMBER = 'ERR could not decode requested zset member';
const COUNT_NOT_POSITIVE = 'ERR COUNT must be > 0';
const ANY_WITHOUT_COUNT = 'ERR the ANY argument requires COUNT argument';
const KEPT_DISTANCES_MAX = 1 << 17;

/** Where the centre comes from: arguments in fixed places, or options. */
const enum Centre {
  PLACE = 0,
  MEMBER = 1,
  OPTIONS = 2,
}

const enum Sort {
  NONE = 0,
  NEAREST = 1,
  FARTHEST = 2,
}

/** What the running command asks for. */
const asked = {
  sort: Sort.NONE,
  /** 0 = all. */
  count: 0,
  any: false,
  withDistance: false,
  withHash: false,
  withPlace: false,
  storesDistance: false,
  hasCentre: false,
  hasArea: false,
  /** Argument of FROMMEMBER that has been given, 0 = none. */
  fromMember: 0,
};

/** One for each of `members`, in metres. */
let distances = new Float64Array(64);

// ---- reading the request

/** Reads options from argument `i` on; false after an error reply. */
function readOptions(context: Context, set: Collection, i: number, centre: Centre, mayStore: boolean): boolean {
  const { argc } = context;
  const isSearch = centre === Centre.OPTIONS;
  asked.sort = Sort.NONE;
  asked.count = 0;
  asked.any = false;
  asked.withDistance = false;
  asked.withHash = false;
  asked.withPlace = false;
  asked.storesDistance = false;
  asked.hasCentre = false;
  asked.hasArea = false;
  asked.fromMember = 0;
  for (; i < argc; i++) {
    const left = argc - i - 1;
    if (context.argIs(i, 'WITHDIST')) asked.withDistance = true;
    else if (context.argIs(i, 'WITHHASH')) asked.withHash = true;
    else if (context.argIs(i, 'WITHCOORD')) asked.withPlace = true;
    else if (context.argIs(i, 'ANY')) asked.any = true;
    else if (context.argIs(i, 'ASC')) asked.sort = Sort.NEAREST;
    else if (context.argIs(i, 'DESC')) asked.sort = Sort.FARTHEST;
    else if (context.argIs(i, 'COUNT') && left > 0) {
      asked.count = context.argInteger(++i);
      if (Number.isNaN(asked.count)) return fail(context, NOT_INTEGER);
      if (asked.count <= 0) return fail(context, COUNT_NOT_POSITIVE);
    } else if (!isSearch && mayStore && left > 0 && isStore(context, i)) {
      asked.storesDistance = context.argLength(i) > 'STORE'.length;
      i++;
    } else if (isSearch && mayStore && context.argIs(i, 'STOREDIST')) {
      asked.storesDistance = true;
    } else {
      const taken = isSearch ? readArea(context, set, i, left) : 0;
      if (taken < 0) return false;
      if (taken === 0) return fail(context, SYNTAX);
      i += taken;
    }
  }
  return true;
}

function isStore(context: Context, i: number): boolean {
  return context.argIs(i, 'STORE') || context.argIs(i, 'STOREDIST');
}

/** Reads GEOSEARCH's option at argument `i` if it says where: returns how many arguments it has, 0 = it is none, -1 after an error reply. */
function readArea(context: Context, set: Collection, i: number, left: number): number {
  if (context.argIs(i, 'FROMMEMBER') && left > 0 && (!asked.hasCentre || asked.fromMember > 0)) {
    asked.hasCentre = true;
    asked.fromMember = i + 1;
    return !set.exists || centreOnMember(context, set, i + 1) ? 1 : -1;
  }
  if (context.argIs(i, 'FROMLONLAT') && left > 1 && asked.fromMember === 0) {
    asked.hasCentre = true;
    return centreOnPlace(context, i + 1) ? 2 : -1;
  }
  if (context.argIs(i, 'BYRADIUS') && left > 1 && (!asked.hasArea || area.isCircle)) {
    asked.hasArea = true;
    return readCircle(context, i + 1) ? 2 : -1;
  }
  if (context.argIs(i, 'BYBOX') && left > 2 && (!asked.hasArea || !area.isCircle)) {
    asked.hasArea = true;
    return readBox(context, i + 1) ? 3 : -1;
  }
  return 0;
}

function centreOnMember(context: Context, set: Collection, i: number): boolean {
  if (!findMember(context, set, i)) return fail(context, NO_MEMBER);
  decode(set.score);
  area.longitude = place.longitude;
  area.latitude = place.latitude;
  return true;
}

function centreOnPlace(context: Context, i: number): boolean {
  if (!readPlace(context, i)) return false;
  area.longitude = given.longitude;
  area.latitude = given.latitude;
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** What does not go together. */
function isConsistent(context: Context, centre: Centre, stores: boolean): boolean {
  if (stores && (asked.withDistance || asked.withHash || asked.withPlace)) {
    const what = centre === Centre.OPTIONS ? 'GEOSEARCHSTORE' : 'STORE option in GEORADIUS';
    return fail(context, `ERR ${what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options`);
  }
  if (centre === Centre.OPTIONS) {
    const name = context.argString(0);
    if (!asked.hasCentre)
      return fail(context, `ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ${name}`);
    if (!asked.hasArea) return fail(context, `ERR exactly one of BYRADIUS and BYBOX can be specified for ${name}`);
  }
  return !asked.any || asked.count > 0 || fail(context, ANY_WITHOUT_COUNT);
}

// ---- searching

/** Gathers the members within the area, up to `limit`. */
function gather(set: Collection, limit: number): void {
  result.clear();
  if (distances.length > KEPT_DISTANCES_MAX) distances = new Float64Array(64);
  for (const { min, max } of coveringRanges()) {
    if (members.count >= limit) return;
    for (set.seekScore(min, Bound.BEFORE); !set.atEnd; set.next()) {
      set.load();
      const { score } = set;
      if (score >= max) break;
      const metres = distanceWithin(score);
      if (metres === -1) continue;
      result.keepElement(set);
      keepDistance(metres);
      if (members.count >= limit) return;
    }
  }
}

function keepDistance(metres: number): void {
  const at = members.count - 1;
  if (at >= distances.length) {
    const larger = new Float64Array(distances.length * 2);
    larger.set(distances);
    distances = larger;
  }
  distances[at] = metres;
}

function nearerFirst(a: number, b: number): number {
  return distances[a] - distances[b];
}

function fartherFirst(a: number, b: number): number {
  return distances[b] - distances[a];
}

/** The numbers of the gathered members, in the order asked for, as many as were asked for. */
function orderResult(): Uint32Array {
  const order = new Uint32Array(members.count);
  for (let i = 0; i < order.length; i++) order[i] = i;
  // The nearest are meant by COUNT, unless any will do.
  const sort = asked.sort === Sort.NONE && asked.count > 0 && !asked.any ? Sort.NEAREST : asked.sort;
  if (sort !== Sort.NONE) order.sort(sort === Sort.NEAREST ? nearerFirst : fartherFirst);
  return asked.count === 0 ? order : order.subarray(0, asked.count);
}

function replyFound(context: Context, order: Uint32Array): void {
  const { reply } = context;
  const details = (asked.withDistance ? 1 : 0) + (asked.withHash ? 1 : 0) + (asked.withPlace ? 1 : 0);
  reply.array(order.length);
  for (let n = 0; n < order.length; n++) {
    const i = order[n];
    if (details > 0) reply.array(1 + details);
    reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
    if (asked.withDistance) replyDistance(context, distances[i] / area.metresPerUnit);
    if (asked.withHash) replyScore(context, result.scores[i]);
    if (!asked.withPlace) continue;
    decode(result.scores[i]);
    replyPlace(context, place.longitude, place.latitude);
  }
}

/** A score that no GEOADD has made need be no integer. */
function replyScore(context: Context, score: number): void {
  const whole = Math.trunc(score);
  if (Number.isSafeInteger(whole)) context.reply.integer(whole + 0);
  else context.reply.integer64(toInt64(whole));
}

function toInt64(whole: number): bigint {
  return whole >= -(2 ** 63) && whole < 2 ** 63 ? BigInt(whole) : -(2n ** 63n);
}

function storeFound(context: Context, order: Uint32Array, k: number): void {
  const kept = new Uint8Array(members.count);
  for (let n = 0; n < order.length; n++) kept[order[n]] = 1;
  for (let i = 0; i < kept.length; i++) {
    if (kept[i] === 0) members.drop(i);
    else if (asked.storesDistance) result.scores[i] = distances[i] / area.metresPerUnit;
  }
  storeResult(context, context.command.spec.name === 'geosearchstore' ? 'geosearchstore' : 'georadiusstore', k);
}

/** The source's key is in argument `source`. `into`: the destination is this key of the command, -1 = the result is replied. */
function search(context: Context, centre: Centre, source: number, into: number, mayStore: boolean): void {
  const { reply } = context;
  const hash = source === 1 ? context.keyHash : context.keyHashes[1];
  const set = openSortedSet(context, 0, hash, source);
  if (set === null) return;
  if (set.exists) context.hit();
  else context.miss();
  let options = centre === Centre.OPTIONS ? source + 1 : 6;
  if (centre === Centre.PLACE) {
    if (!centreOnPlace(context, 2) || !readCircle(context, 4)) return;
  } else if (centre === Centre.MEMBER) {
    options = 5;
    if (set.exists && (!centreOnMember(context, set, 2) || !readCircle(context, 3))) return;
  }
  if (!readOptions(context, set, options, centre, mayStore) || !isConsistent(context, centre, into >= 0)) return;
  if (set.exists) {
    gather(set, asked.any ? asked.count : Number.POSITIVE_INFINITY);
  } else {
    result.clear();
  }
  if (into >= 0) return storeFound(context, orderResult(), into);
  if (members.count === 0) return reply.array(0);
  replyFound(context, orderResult());
  result.clear();
}

function geoSearch(context: Context): void {
  search(context, Centre.OPTIONS, 1, -1, false);
}

function geoSearchStore(context: Context): void {
  search(context, Centre.OPTIONS, 2, 0, true);
}

function geoRadius(context: Context): void {
  search(context, Centre.PLACE, 1, context.keyCount - 1 || -1, true);
}

function geoRadiusRo(context: Context): void {
  search(context, Centre.PLACE, 1, -1, false);
}

function geoRadiusByMember(context: Context): void {
  search(context, Centre.MEMBER, 1, context.keyCount - 1 || -1, true);
}

function geoRadiusByMemberRo(context: Context): void {
  search(context, Centre.MEMBER, 1, -1, false);
}

/** The source, and the keys behind STORE and STOREDIST among the options from argument `from` on, of which the last one counts. */
function findKeys(context: Context, from: number, add: (argument: number, use: number) => void): void {
  add(1, KeyUse.RO | KeyUse.ACCESS);
  for (let i = from; i + 1 < context.argc; i++) {
    if (context.argIs(i, 'COUNT')) i++;
    else if (isStore(context, i)) add(++i, KeyUse.OW | KeyUse.UPDATE);
  }
}

// ---- declarations

const KEY = keyArg('key');
const FROM = oneOf('from', [
  stringArg('member', { token: 'FROMMEMBER' }),
  blockArg('fromlonlat', [doubleArg('longitude'), doubleArg('latitude')], { token: 'FROMLONLAT' }),
]);
const UNIT = oneOf('unit', UNITS);
const BY = oneOf('by', [
  blockArg('circle', [doubleArg('radius', { token: 'BYRADIUS' }), UNIT]),
  blockArg('box', [doubleArg('width', { token: 'BYBOX' }), doubleArg('height'), UNIT]),
]);
const ORDER = oneOf('order', [tokenArg('ASC'), tokenArg('DESC')], { optional: true });
const ANY = optional(tokenArg('ANY'));
const COUNT = blockArg('count-block', [integerArg('count', { token: 'COUNT' }), ANY], { optional: true });
const COUNT_OLD = blockArg('count-block', [integerArg('count', { token: 'COUNT' }), { ...ANY, since: '6.2.0' }], {
  optional: true,
});
const WITH = [
  tokenArg('WITHCOORD', { optional: true }),
  tokenArg('WITHDIST', { optional: true }),
  tokenArg('WITHHASH', { optional: true }),
];
const STORED = oneOf(
  'store',
  [keyArg('storekey', { token: 'STORE', keySpec: 1 }), keyArg('storedistkey', { token: 'STOREDIST', keySpec: 2 })],
  { optional: true },
);
const PLACE = [doubleArg('longitude'), doubleArg('latitude')];
const CIRCLE = [doubleArg('radius'), UNIT];
const COMMON = {
  categories: Category.GEO,
  group: 'geo',
  complexity: 'O(N+log(M)) for N members in and near the area, and M of the sorted set',
} as const;
const SOURCE = keyAt(1, KeyUse.RO | KeyUse.ACCESS);
const UPPER_CASE = ['7.0.0', 'Units in capital letters.'] as const;
const RADIUS = { ...COMMON, flags: Flag.WRITE | Flag.DENYOOM } as const;
const STORED_KEYS = [
  SOURCE,
  keyBehind('STORE', 6, KeyUse.OW | KeyUse.UPDATE),
  keyBehind('STOREDIST', 6, KeyUse.OW | KeyUse.UPDATE),
];
const RADIUS_HISTORY = [['6.2.0', 'The option ANY of COUNT.'], UPPER_CASE] as const;
const RO_HISTORY = [['6.2.0', 'The option ANY of COUNT.']] as const;

export const geoSearches: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'geosearch',
    arity: -7,
    flags: Flag.READONLY,
    keys: [SOURCE],
    since: '6.2.0',
    summary: 'Returns the members within a circle or a box.',
    history: [UPPER_CASE],
    args: [KEY, FROM, BY, ORDER, COUNT, ...WITH],
    run: geoSearch,
  },
  {
    ...COMMON,
    name: 'geosearchstore',
    arity: -8,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.OW | KeyUse.UPDATE), keyAt(2, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.2.0',
    summary: 'Stores the members within a circle or a box as a sorted set, with their places or their distances.',
    history: [UPPER_CASE],
    args: [
      keyArg('destination'),
      keyArg('source', { keySpec: 1 }),
      FROM,
      BY,
      ORDER,
      COUNT,
      tokenArg('STOREDIST', { optional: true }),
    ],
    run: geoSearchStore,
  },
  {
    ...RADIUS,
    name: 'georadius',
    arity: -6,
    keys: STORED_KEYS,
    findKeys: (context, add) => findKeys(context, 6, add),
    since: '3.2.0',
    summary: 'Returns, or stores, the members within a distance of a place.',
    deprecated: { since: '6.2.0', replacedBy: '`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument' },
    history: RADIUS_HISTORY,
    args: [KEY, ...PLACE, ...CIRCLE, ...WITH, COUNT_OLD, ORDER, STORED],
    run: geoRadius,
  },
  {
    ...RADIUS,
    name: 'georadiusbymember',
    arity: -5,
    keys: [
      SOURCE,
      keyBehind('STORE', 5, KeyUse.OW | KeyUse.UPDATE),
      keyBehind('STOREDIST', 5, KeyUse.OW | KeyUse.UPDATE),
    ],
    findKeys: (context, add) => findKeys(context, 5, add),
    since: '3.2.0',
    summary: 'Returns, or stores, the members within a distance of another one.',
    deprecated: {
      since: '6.2.0',
      replacedBy: '`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments',
    },
    history: RADIUS_HISTORY,
    args: [KEY, stringArg('member'), ...CIRCLE, ...WITH, COUNT_OLD, ORDER, STORED],
    run: geoRadiusByMember,
  },
  {
    ...COMMON,
    name: 'georadius_ro',
    arity: -6,
    flags: Flag.READONLY,
    keys: [SOURCE],
    since: '3.2.10',
    summary: 'Returns the members within a distance of a place.',
    deprecated: { since: '6.2.0', replacedBy: '`GEOSEARCH` with the `BYRADIUS` argument' },
    history: RO_HISTORY,
    args: [KEY, ...PLACE, ...CIRCLE, ...WITH, COUNT_OLD, ORDER],
    run: geoRadiusRo,
  },
  {
    ...COMMON,
    name: 'georadiusbymember_ro',
    arity: -5,
    flags: Flag.READONLY,
    keys: [SOURCE],
    since: '3.2.10',
    summary: 'Returns the members within a distance of another one.',
    deprecated: { since: '6.2.0', replacedBy: '`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments' },
    args: [KEY, stringArg('member'), ...CIRCLE, ...WITH, COUNT_OLD, ORDER],
    run: geoRadiusByMemberRo,
  },
];
