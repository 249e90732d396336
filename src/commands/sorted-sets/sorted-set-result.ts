/**
 * Members with scores that a command has gathered beside the store: what it replies or stores when it is done with its sources.
 *
 * Owns: the scores, one for each of `members`. Invariant: what is stored is stored whole or not at all.
 */
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { members } from '../sets/member-table.js';
import { openSortedSetDraft } from './sorted-set-members.js';

const KEPT_SCORES_MAX = 1 << 17;

export let scores = new Float64Array(64);

export function clearResult(): void {
  members.clear();
  if (scores.length > KEPT_SCORES_MAX) scores = new Float64Array(64);
}

/** Notes the score of the member that has just been gathered. */
export function keepScore(score: number): void {
  const at = members.count - 1;
  if (at >= scores.length) {
    const larger = new Float64Array(scores.length * 2);
    larger.set(scores);
    scores = larger;
  }
  scores[at] = score;
}

/** Gathers the element at the position of a sorted set. */
export function keepElement(set: Collection): void {
  set.load();
  members.push(set.key, set.keyOffset, set.keyLength);
  keepScore(set.score);
}

/** Replies member `i`. */
export function replyMember(context: Context, i: number, withScore: boolean, isPair: boolean): void {
  const { reply } = context;
  if (isPair) reply.array(2);
  reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
  if (withScore) reply.double(scores[i]);
}

/** Makes the gathered members the value of key `k` of the command, and replies how many there are; `event` says that it was made. */
export function storeResult(context: Context, event: string, k = 0): void {
  const { reply } = context;
  const hash = context.keyHashes[k];
  const i = context.keyArguments[k];
  const { size } = members;
  if (size === 0) {
    clearResult();
    context.removeKey(hash, i);
    return reply.integer(0);
  }
  const set = openSortedSetDraft(context, 0, hash, i);
  const isWhole = fill(set);
  clearResult();
  if (!isWhole) {
    if (set.exists) set.removeKey();
    return reply.error(NO_MEMORY);
  }
  if (!context.publish(set, hash, i)) return;
  context.notify(Notify.ZSET, event, i);
  reply.integer(size);
}

/** Adds the gathered members to a sorted set; false = no memory for all of them. */
function fill(set: Collection): boolean {
  for (let i = 0; i < members.count; i++) {
    if (!members.has(i)) continue;
    const change = set.insertScored(scores[i], members.bytes, members.offsets[i], members.lengths[i]);
    if (change !== Change.DONE) return false;
  }
  return true;
}

/** The numbers of the gathered members in the order of a sorted set. */
export function sortedResult(): Uint32Array {
  const order = new Uint32Array(members.size);
  for (let i = 0, at = 0; i < members.count; i++) if (members.has(i)) order[at++] = i;
  return order.sort(compareMembers);
}

function compareMembers(a: number, b: number): number {
  if (scores[a] !== scores[b]) return scores[a] < scores[b] ? -1 : 1;
  const { u8 } = members.bytes;
  const common = Math.min(members.lengths[a], members.lengths[b]);
  for (let i = 0; i < common; i++) {
    const difference = u8[members.offsets[a] + i] - u8[members.offsets[b] + i];
    if (difference !== 0) return difference;
  }
  return members.lengths[a] - members.lengths[b];
}
