/**
 * Locks that nobody holds: of a damaged pool. Who takes a seat in it would wait for them for ever.
 *
 * To be asked while nobody is at work in the pool. A participant that has died still has its seat, and what it had locked is released when it is
 * mended; a lock of a seat that is free is damage.
 */
import { GATE_HOLDER, Participant, ParticipantState, Shard, SlabClass, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { CLASS_COUNT } from '../memory/slab-classes.js';

const NAMED: readonly (readonly [word: number, name: string])[] = [
  [Super.PAGE_LOCK_WORD, 'the page table'],
  [Super.RECLAIM_LOCK_WORD, 'reclaim'],
  [Super.PIN_LOCK_WORD, 'the pin table'],
  [Super.INTEREST_LOCK_WORD, 'the interest table'],
  [Super.GRAVE_LOCK_WORD, 'the graveyard'],
  [Super.WARM_LOCK_WORD, 'the warm state'],
];

/** The first such lock, in words; '' = none. */
export function findStrayLock(memory: Memory): string {
  const { ctl } = memory;
  const hasSeat = (participant: number): boolean =>
    participant >= 0 &&
    participant < Participant.MAX &&
    ctl[memory.participantWord(participant) + Participant.STATE_WORD] !== ParticipantState.FREE;
  // Owner and the mark of waiters.
  const isStray = (word: number): boolean =>
    ctl[word] !== 0 && (ctl[word] >>> 9 !== 0 || !hasSeat((ctl[word] & 0xff) - 1));
  for (const [word, name] of NAMED) if (isStray(word)) return `${name} is locked by nobody`;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    if (isStray(memory.shardTable + shard * Shard.WORDS + Shard.LOCK_WORD)) return `shard ${shard} is locked by nobody`;
  }
  for (let c = 0; c < CLASS_COUNT; c++) {
    if (isStray(memory.classTable + c * SlabClass.WORDS + SlabClass.LOCK_WORD)) return `class ${c} is locked by nobody`;
  }
  for (let p = 0; p < Participant.MAX; p++) {
    if (isStray(memory.participantWord(p) + Participant.MAILBOX_LOCK_WORD)) return `mailbox ${p} is locked by nobody`;
  }
  const gate = ctl[Super.GATE_WORD];
  if (gate !== 0 && !hasSeat((gate & GATE_HOLDER) - 1)) return 'the gate is closed by nobody';
  const lone = (ctl[Super.LONE_WORD] & 0xff) - 1;
  if (lone >= 0 && lone < Participant.MAX && !hasSeat(lone)) {
    if (ctl[memory.participantWord(lone) + Participant.IN_BATCH_WORD] !== 0) return 'nobody is alone, and at work';
  }
  return ctl[Super.LONE_WORD] >>> 9 !== 0 || (ctl[Super.LONE_WORD] & 0xff) > Participant.MAX ? 'nobody is alone' : '';
}
