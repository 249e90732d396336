/**
 * Members with scores that a command has gathered beside the store: what it replies or stores when it is done with its sources.
 *
 * Owns: the scores, one for each member of a table. Invariant: what is stored is stored whole or not at all.
 */
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection, SORTED_SETS } from '../../store/collections/collection.js';
import type { Keyspace } from '../../store/keyspace.js';
import { type LongResult, storeInSteps } from '../collections/long-store.js';
import { orderByHash, sortInSteps } from '../collections/ordering.js';
import { TableSource } from '../collections/table-source.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isLong, isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { type MemberTable, members } from '../sets/member-table.js';
import { openSortedSetDraft } from './sorted-set-members.js';

const KEPT_SCORES_MAX = 1 << 17;

export class ScoredMembers {
  readonly table: MemberTable;
  scores = new Float64Array(64);

  constructor(table: MemberTable) {
    this.table = table;
  }

  clear(): void {
    this.table.clear();
    if (this.scores.length > KEPT_SCORES_MAX) this.scores = new Float64Array(64);
  }

  /** Makes room for so many members: see MemberTable.expect. */
  expect(memberCount: number, byteCount: number): void {
    this.table.expect(memberCount, byteCount);
    this.scores = new Float64Array(memberCount + 1);
  }

  /** Hands everything over to an object of its own, and is empty. */
  take(): ScoredMembers {
    const taken = new ScoredMembers(this.table.take());
    taken.scores = this.scores;
    this.scores = new Float64Array(64);
    return taken;
  }

  /** Notes the score of the member that has just been gathered. */
  keepScore(score: number): void {
    const at = this.table.count - 1;
    if (at >= this.scores.length) {
      const larger = new Float64Array(this.scores.length * 2);
      larger.set(this.scores);
      this.scores = larger;
    }
    this.scores[at] = score;
  }

  /** Gathers the element at the position of a sorted set. */
  keepElement(set: Collection): void {
    set.load();
    this.table.push(set.key, set.keyOffset, set.keyLength);
    this.keepScore(set.score);
  }

  /** Replies member `i`. */
  reply(context: Context, i: number, withScore: boolean, isPair: boolean): void {
    const { reply } = context;
    const { bytes, offsets, lengths } = this.table;
    if (isPair) reply.array(2);
    reply.bulk(bytes, offsets[i], lengths[i]);
    if (withScore) reply.double(this.scores[i]);
  }

  /** The members' numbers in the order of a sorted set. */
  sorted(): Uint32Array {
    const { table } = this;
    const order = new Uint32Array(table.size);
    for (let i = 0, at = 0; i < table.count; i++) if (table.has(i)) order[at++] = i;
    return order.sort((a, b) => this.compare(a, b));
  }

  compare(a: number, b: number): number {
    const { scores, table } = this;
    if (scores[a] !== scores[b]) return scores[a] < scores[b] ? -1 : 1;
    const { u8 } = table.bytes;
    const { offsets, lengths } = table;
    const common = Math.min(lengths[a], lengths[b]);
    for (let i = 0; i < common; i++) {
      const difference = u8[offsets[a] + i] - u8[offsets[b] + i];
      if (difference !== 0) return difference;
    }
    return lengths[a] - lengths[b];
  }
}

/** Of the commands that are done in one go. */
export const result = new ScoredMembers(members);

/** Makes the gathered members the value of key `k` of the command, and replies how many there are; `event` says that it was made. */
export function storeResult(context: Context, event: string, k = 0): void {
  if (isLong(result.table.size)) {
    const [first, end] = k === 0 ? [1, context.keyCount] : [0, k];
    return takeSteps(context, first, end, (work) => storeLong(context, work, result.take(), event, k));
  }
  storeNow(context, result, event, k);
  result.clear();
}

/** The same for a result that may be long. */
export function* storeLong(context: Context, work: LongWork, own: ScoredMembers, event: string, k: number): Steps {
  const { size } = own.table;
  if (!isLong(size) || size <= context.environment.settings.zsetMaxListpackEntries) {
    return storeNow(context, own, event, k);
  }
  if (!(yield* storeInSteps(context, work, k, yield* placeMembers(context.keyspace, own)))) return;
  context.notify(Notify.ZSET, event, context.keyArguments[k]);
  context.reply.integer(size);
}

/** Puts gathered members in the order of both trees of a sorted set. */
export function* placeMembers(keyspace: Keyspace, own: ScoredMembers): Steps<LongResult> {
  const order = yield* sortedInSteps(own);
  const side = yield* sideMembers(keyspace, own, order);
  const source = new TableSource(own.table, order, { scores: own.scores });
  return { shape: SORTED_SETS, count: own.table.size, source, side };
}

/** The members' numbers in the order of a sorted set. */
export function* sortedInSteps(own: ScoredMembers): Steps<Uint32Array> {
  const { table } = own;
  const order = new Uint32Array(table.size);
  for (let i = 0, at = 0; i < table.count; i++) if (table.has(i)) order[at++] = i;
  return yield* sortInSteps(order, (a, b) => own.compare(a, b));
}

const scoreBytes = new DataView(new ArrayBuffer(16));

/** As the bytes of scores are compared in a side tree. */
export function compareScoreBytes(a: number, b: number): number {
  scoreBytes.setFloat64(0, a + 0);
  scoreBytes.setFloat64(8, b + 0);
  const high = scoreBytes.getUint32(0) - scoreBytes.getUint32(8);
  return high === 0 ? scoreBytes.getUint32(4) - scoreBytes.getUint32(12) : high;
}

function* sideMembers(keyspace: Keyspace, own: ScoredMembers, order: Uint32Array) {
  const { table, scores } = own;
  const { hashes, bytes, offsets, lengths } = table;
  for (let n = 0; n < order.length; n++) {
    const i = order[n];
    hashes[i] = keyspace.hash(0, bytes, offsets[i], lengths[i]);
    if (n % STEP_ELEMENTS === 0 && isSliceOver()) yield;
  }
  const byHash = yield* orderByHash(order.slice(), hashes, (a, b) => compareScoreBytes(scores[a], scores[b]));
  return { hashes: new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length), scores, order: byHash };
}

function storeNow(context: Context, own: ScoredMembers, event: string, k: number): void {
  const { reply } = context;
  const hash = context.keyHashes[k];
  const i = context.keyArguments[k];
  const { size } = own.table;
  if (size === 0) {
    context.removeKey(hash, i);
    return reply.integer(0);
  }
  const set = openSortedSetDraft(context, 0, hash, i);
  if (!fill(set, own)) {
    if (set.exists) set.removeKey();
    return reply.error(NO_MEMORY);
  }
  if (!context.publish(set, hash, i)) return;
  context.notify(Notify.ZSET, event, i);
  reply.integer(size);
}

/** Adds the gathered members to a sorted set; false = no memory for all of them. */
function fill(set: Collection, { table, scores }: ScoredMembers): boolean {
  for (let i = 0; i < table.count; i++) {
    if (!table.has(i)) continue;
    if (set.insertScored(scores[i], table.bytes, table.offsets[i], table.lengths[i]) !== Change.DONE) return false;
  }
  return true;
}
