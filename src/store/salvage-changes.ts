/**
 * Changes that were under way in a damaged pool whose dead participants cannot be mended: undone, as far as their journals are whole.
 *
 * In a copy of the pool. Invariant: no half-changed value stays: where a journal is damaged, nothing is taken of the shards that its owner had locked.
 */
import { Page, pageOffset } from '../layout/location.js';
import { PageKind, Participant, ParticipantState, Shard } from '../layout/superblock.js';
import { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';

/** Returns the shards of which nothing can be taken. */
export function undoChanges(memory: Memory): ReadonlySet<number> {
  const { ctl } = memory;
  const doubtful = new Set<number>();
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    if (ctl[at + Participant.STATE_WORD] === ParticipantState.FREE || undo(memory, ctl[at + Participant.PAGE_WORD]))
      continue;
    for (let shard = 0; shard < memory.shardCount; shard++) {
      if ((ctl[memory.shardTable + shard * Shard.WORDS + Shard.LOCK_WORD] & 0xff) === p + 1) doubtful.add(shard);
    }
  }
  return doubtful;
}

/** False when the participant's page does not tell what it had changed. */
function undo(memory: Memory, page: number): boolean {
  if (!memory.isPage(page) || memory.pageKind(page) !== PageKind.PARTICIPANT) return false;
  const journal = new Journal(memory, memory.arenas[page >>> Page.ARENA_SHIFT].i32, pageOffset(page) >>> 2);
  if (!journal.isSound) return false;
  journal.rollback();
  return true;
}
