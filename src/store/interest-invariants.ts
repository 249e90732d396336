/**
 * The part of checkInvariants that walks the interest table: every node in one place, the hints never too low, no node of a
 * participant that is gone.
 */
import { Interest, InterestKind } from '../layout/interest.js';
import { Page, pageOffset } from '../layout/location.js';
import { Participant, ParticipantState, Shard, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';

/** Calls `report` with the first thing that does not hold. Nobody else is at work. */
export function checkInterests(memory: Memory, report: (problem: string) => void): void {
  const { ctl } = memory;
  if (ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE) return;
  const seen = new Set<number>();
  const perShard = new Int32Array(memory.shardCount);
  let channels = 0;
  let waiters = 0;
  const heads = words(memory, ctl[Super.INTEREST_HEADS_WORD]);
  for (let head = 0; head < Interest.HEADS; head++) {
    for (let node = heads.i32[heads.base + head]; node !== 0; ) {
      if (seen.has(node)) return report(`interest node ${node} stands in two places`);
      seen.add(node);
      const at = nodeAt(memory, node);
      const shape = at.i32[at.base + Interest.SHAPE_WORD];
      const hash = at.i32[at.base + Interest.HASH_WORD];
      const [kind, seat] = [shape & 0xff, shape >>> 8];
      if (kind === InterestKind.FREE) return report(`interest node ${node} is free and in bucket ${head}`);
      if ((hash & Interest.HEADS_MASK) !== head) return report(`interest node ${node} stands in the wrong bucket`);
      const state = ctl[memory.participantWord(seat) + Participant.STATE_WORD];
      if (state === ParticipantState.FREE)
        return report(`interest node ${node} belongs to participant ${seat}, who is gone`);
      if (kind === InterestKind.WAITER) waiters++;
      if (kind === InterestKind.WAITER || kind === InterestKind.TRACKED) perShard[hash & (memory.shardCount - 1)]++;
      else channels++;
      node = at.i32[at.base + Interest.NEXT_WORD];
    }
  }
  for (let node = ctl[Super.INTEREST_FREE_WORD]; node !== 0; ) {
    if (seen.has(node)) return report(`interest node ${node} is free and in use, or free twice`);
    seen.add(node);
    const at = nodeAt(memory, node);
    node = at.i32[at.base + Interest.NEXT_WORD];
  }
  if (seen.size !== ctl[Super.INTEREST_CARVED_WORD]) {
    return report(`${seen.size} interest nodes found, ${ctl[Super.INTEREST_CARVED_WORD]} handed out`);
  }
  if (channels > ctl[Super.CHANNELS_WORD])
    return report(`${channels} channel nodes, counted ${ctl[Super.CHANNELS_WORD]}`);
  if (waiters > ctl[Super.WAITERS_WORD]) return report(`${waiters} waiters, counted ${ctl[Super.WAITERS_WORD]}`);
  for (let shard = 0; shard < memory.shardCount; shard++) {
    const counted = ctl[memory.shardTable + shard * Shard.WORDS + Shard.INTERESTS_WORD] & Shard.INTERESTED_MASK;
    if (perShard[shard] > counted) return report(`shard ${shard}: ${perShard[shard]} interests, counted ${counted}`);
  }
}

function words(memory: Memory, page: number): { i32: Int32Array; base: number } {
  return { i32: memory.arenas[page >>> Page.ARENA_SHIFT].i32, base: pageOffset(page) >>> 2 };
}

function nodeAt(memory: Memory, node: number): { i32: Int32Array; base: number } {
  const index = node - 1;
  const page = memory.ctl[Super.INTEREST_DIRECTORY_WORD + (index >>> Interest.NODE_PAGE_SHIFT)];
  const { i32, base } = words(memory, page);
  return { i32, base: base + ((index & (Interest.NODES_PER_PAGE - 1)) << Interest.NODE_SHIFT) };
}
