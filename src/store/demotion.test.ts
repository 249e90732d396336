/** Demotion copies without the shard's lock: what others do to the item meanwhile is never lost, and never torn. */
import { expect, it } from 'vitest';
import { openTestStore } from '../../test/helpers/store.js';
import { Bytes } from '../layout/bytes.js';
import { Shard, Super } from '../layout/superblock.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import { Verdict } from './verdict.js';

const MIB = 1024 * 1024;

function open(): Keyspace {
  const keyspace = openTestStore({ dramBytes: 18 * MIB, capacityBytes: 4 * MIB, policy: 'allkeys-lru' });
  keyspace.refreshClock();
  keyspace.enterBatch();
  return keyspace;
}

function hashOf(keyspace: Keyspace, key: Bytes): number {
  return keyspace.hash(0, key, 0, key.length);
}

function set(keyspace: Keyspace, name: string, value: string): void {
  const key = Bytes.from(name);
  const hash = hashOf(keyspace, key);
  if (!keyspace.stage(hash, 0, key, 0, key.length, value.length)) throw new Error('refused');
  keyspace.staged.u8.set(Buffer.from(value), keyspace.stagedOffset);
  keyspace.lock(hash);
  keyspace.commit(1, 0, 0, 0);
  keyspace.unlock(hash);
}

/** Runs `action` on the found item under its lock. */
function withFound(keyspace: Keyspace, name: string, action: () => void): boolean {
  const key = Bytes.from(name);
  const hash = hashOf(keyspace, key);
  keyspace.lock(hash);
  const found = keyspace.find(hash, 0, key, 0, key.length);
  if (found) action();
  keyspace.unlock(hash);
  return found;
}

function stored(keyspace: Keyspace, name: string): { readonly text: string; readonly isCapacity: boolean } | null {
  let answer = null;
  withFound(keyspace, name, () => {
    const { value, valueOffset, valueLength } = keyspace;
    const text = Buffer.from(value.u8.slice(valueOffset, valueOffset + valueLength)).toString();
    answer = { text, isCapacity: keyspace.memory.isCapacity(keyspace.page) };
  });
  return answer;
}

/** Demotes the item of a key; `meanwhile` runs between the two locks, before or after the item is copied. */
function demote(keyspace: Keyspace, name: string, meanwhile: () => void, isEarly = false): Verdict {
  let page = 0;
  let unit = 0;
  withFound(keyspace, name, () => {
    page = keyspace.page;
    unit = keyspace.unit;
  });
  const { log } = keyspace;
  const append = log.append;
  let calls = 0;
  log.append = (...place) => {
    calls++;
    const { ctl, shardTable, shardCount } = keyspace.memory;
    for (let shard = 0; shard < shardCount; shard++) {
      expect(ctl[shardTable + shard * Shard.WORDS + Shard.LOCK_WORD], 'lock of a shard while the copy is written').toBe(
        0,
      );
    }
    if (isEarly) meanwhile();
    const isCopied = append.apply(log, place);
    if (!isEarly) meanwhile();
    return isCopied;
  };
  try {
    return keyspace.eviction.examine(page, unit, false);
  } finally {
    log.append = append;
    expect(calls).toBe(1);
  }
}

function finish(keyspace: Keyspace): void {
  checkInvariants(keyspace);
  keyspace.leaveBatch();
}

it('moves an item that nobody touches', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  expect(demote(keyspace, 'k', () => undefined)).toBe(Verdict.FREED);
  expect(stored(keyspace, 'k')).toEqual({ text: 'value', isCapacity: true });
  finish(keyspace);
});

it('keeps what was changed in place meanwhile', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  const change = (): void => {
    withFound(keyspace, 'k', () => {
      expect(keyspace.edit(0, 5)).toBe(true);
      keyspace.value.u8.set(Buffer.from('VALUE'), keyspace.valueOffset);
    });
  };
  expect(demote(keyspace, 'k', change)).toBe(Verdict.SKIPPED);
  expect(stored(keyspace, 'k')).toEqual({ text: 'VALUE', isCapacity: false });
  finish(keyspace);
});

it('keeps flags that were changed meanwhile', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  demote(keyspace, 'k', () => withFound(keyspace, 'k', () => keyspace.setClientFlags(7)));
  withFound(keyspace, 'k', () => expect(keyspace.clientFlags).toBe(7));
  finish(keyspace);
});

it('brings nothing back that was deleted or replaced meanwhile, whoever has the chunk by then', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  const remove = (): void => {
    withFound(keyspace, 'k', () => keyspace.remove());
    set(keyspace, 'o', 'other');
  };
  expect(demote(keyspace, 'k', remove)).toBe(Verdict.SKIPPED);
  expect(stored(keyspace, 'k')).toBeNull();
  expect(stored(keyspace, 'o')).toEqual({ text: 'other', isCapacity: false });

  const replace = (): void => {
    set(keyspace, 'o', 'third');
    set(keyspace, 'o', 'fourth');
  };
  expect(demote(keyspace, 'o', replace)).toBe(Verdict.SKIPPED);
  expect(stored(keyspace, 'o')).toEqual({ text: 'fourth', isCapacity: false });
  finish(keyspace);
});

it('leaves an item alone whose shard is busy when the copy is done', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  const key = Bytes.from('k');
  const word = keyspace.index.shardWord(hashOf(keyspace, key));
  const verdict = demote(keyspace, 'k', () => {
    // Another participant's mark.
    keyspace.memory.ctl[word] = 100;
  });
  keyspace.memory.ctl[word] = 0;
  expect(verdict).toBe(Verdict.SKIPPED);
  expect(stored(keyspace, 'k')).toEqual({ text: 'value', isCapacity: false });
  finish(keyspace);
});

it.each(['that is freed', 'that is filled anew', 'that grows'])(
  'leaves a log page that can be walked when it has copied a chunk %s',
  (how) => {
    const keyspace = open();
    set(keyspace, 'k', 'x'.repeat(1000));
    const meanwhile = (): void => {
      if (how === 'that grows') {
        withFound(keyspace, 'k', () => expect(keyspace.resize(1005)).toBe(true));
        return;
      }
      withFound(keyspace, 'k', () => keyspace.remove());
      if (how === 'that is filled anew') set(keyspace, 'another key', 'y'.repeat(985));
    };
    expect(demote(keyspace, 'k', meanwhile, true)).toBe(Verdict.SKIPPED);
    // Behind it another one, which the walk must find.
    set(keyspace, 'behind', 'value');
    expect(demote(keyspace, 'behind', () => undefined)).toBe(Verdict.FREED);
    finish(keyspace);
  },
);

it('takes no copy from a time in which a change was rolled back', () => {
  const keyspace = open();
  set(keyspace, 'k', 'value');
  const rollBack = (): void => {
    withFound(keyspace, 'k', () => {
      keyspace.edit(0, 5);
      keyspace.value.u8.set(Buffer.from('HALF-'), keyspace.valueOffset);
      keyspace.journal.rollback();
    });
    // As whoever repairs after a death does.
    Atomics.add(keyspace.memory.ctl, Super.RESTORED_WORD, 1);
  };
  expect(demote(keyspace, 'k', rollBack)).toBe(Verdict.SKIPPED);
  expect(stored(keyspace, 'k')).toEqual({ text: 'value', isCapacity: false });
  finish(keyspace);
});
