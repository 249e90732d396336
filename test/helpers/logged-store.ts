/**
 * A store whose changes are written down to files of an effect log, and what a start after a reboot makes of these.
 *
 * Invariant: nothing but the caller moves it: what is in files by when follows from its calls.
 */
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createCommandTable } from '../../src/commands/families.js';
import type { CommandTable } from '../../src/commands/table.js';
import { defaultSettings } from '../../src/config/index.js';
import { Bytes } from '../../src/layout/bytes.js';
import { Super } from '../../src/layout/superblock.js';
import { Snapshot } from '../../src/rdb/snapshot.js';
import { encodeEffects } from '../../src/rdb/value-encoder.js';
import { CheckpointTarget } from '../../src/server/effects/checkpoint.js';
import { draftPath, listFiles, removeBefore } from '../../src/server/effects/log-files.js';
import { LogWriter } from '../../src/server/effects/log-writer.js';
import { readAll } from '../../src/server/effects/recovery.js';
import { Replay } from '../../src/server/effects/replay.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { Session } from './session.js';
import { openTestStore } from './store.js';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  folders.push(folder);
  return join(folder, 'effects');
}

export class LoggedStore {
  readonly folder = makeFolder();
  readonly keyspace: Keyspace;
  readonly session: Session;
  readonly writer: LogWriter;
  readonly #databases: number;

  constructor(databases = 1, table: CommandTable = createCommandTable()) {
    mkdirSync(this.folder);
    this.#databases = databases;
    this.keyspace = openTestStore({ durability: 'durable' });
    encodeEffects(this.keyspace);
    this.keyspace.memory.ctl[Super.EFFECTS_WRITER_WORD] = this.keyspace.memory.self + 1;
    this.session = new Session(this.keyspace, null, table);
    this.writer = new LogWriter(this.keyspace, this.folder, 1, 0, {
      log: () => undefined,
      checkpoint: () => undefined,
      named: (number) => removeBefore(this.folder, number),
    });
    this.writer.percentage = 0;
  }

  get isInDoubt(): boolean {
    return this.keyspace.memory.ctl[Super.EFFECTS_DOUBT_WORD] !== 0;
  }

  /** What the thread of a checkpoint does after `writer.beginCheckpoint()`; `between` is called between two buckets. */
  writeDraft(between: () => void = () => undefined): void {
    const { number } = this.writer;
    const fd = openSync(draftPath(this.folder, number), 'w');
    const target = new CheckpointTarget(fd, number);
    const drain = target.drain.bind(target);
    target.drain = () => {
      between();
      drain();
    };
    try {
      new Snapshot(this.keyspace, target, () => false).write(this.#databases);
      target.end(this.keyspace.memory.ctl[Super.EFFECTS_NUMBER_WORD]);
    } finally {
      closeSync(fd);
    }
  }

  /** The files as they are at this moment, elsewhere. */
  copyFiles(): string {
    const folder = makeFolder();
    cpSync(this.folder, folder, { recursive: true });
    return folder;
  }
}

/** What a start with a new DRAM tier makes of the files. */
export async function replayFiles(folder: string): Promise<{ keyspace: Keyspace; cutAt: number }> {
  const keyspace = openTestStore({ durability: 'durable' });
  keyspace.feed.effects = null;
  const replay = new Replay(keyspace, defaultSettings());
  const cutAt = await readAll(keyspace, folder, listFiles(folder), replay);
  replay.end();
  return { keyspace, cutAt };
}

/** What a store holds of these keys: digest, expiry and version of each. */
export function contentOf(
  keyspace: Keyspace,
  keys: readonly string[],
  databases = 1,
  session = new Session(keyspace),
): Record<string, string> {
  const content: Record<string, string> = {};
  for (let db = 0; db < databases; db++) {
    session.send(`SELECT ${db}`);
    for (const name of keys) {
      const type = session.send(['TYPE', name]);
      if (type === '+none\r\n') continue;
      const bytes = Bytes.from(name);
      const hash = keyspace.hash(db, bytes, 0, bytes.length);
      keyspace.lock(hash);
      const version = keyspace.find(hash, db, bytes, 0, bytes.length) ? keyspace.version : -1;
      keyspace.unlock(hash);
      const digest = session.send(['DEBUG', 'DIGEST-VALUE', name]);
      content[`${db} ${name}`] = `${type} ${digest} ${session.send(['PEXPIRETIME', name])} ${version}`;
    }
  }
  return content;
}
