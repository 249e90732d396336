/**
 * Power cuts at random moments of a random history: whatever the medium has kept of what was not persistent yet, a start finds the store as
 * it was after some step, the last persistent one or a later, with every transaction whole.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { contentOf, LoggedStore, replayFiles } from '../../../test/helpers/logged-store.js';
import { Group, Segment } from '../../layout/effects.js';
import { Super } from '../../layout/superblock.js';
import { listFiles, segmentPath } from './log-files.js';

const HISTORIES = Number(process.env.ENTRESOL_HISTORIES ?? 2);
const CUTS = 3;
const STEPS_BETWEEN = 30;
const KEYS = ['counter', 'list', 'hash', 'set', 'text', 'other'];
const BLOCK_BYTES = 4096;

let seed = 0;
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}

function request(step: number): string {
  const value = `${step}`.padEnd(1 + random(2000), 'v');
  switch (random(8)) {
    case 0:
      return 'INCR counter';
    case 1:
      return `RPUSH list ${value}`;
    case 2:
      return `HSET hash f${random(9)} ${value}`;
    case 3:
      return `SADD set ${step}`;
    case 4:
      return `SET text ${value}`;
    case 5:
      return 'LPOP list';
    case 6:
      return 'DEL other';
    default:
      return 'RENAME text other';
  }
}

class History {
  readonly store = new LoggedStore();
  /** After each step: number that the next record gets, and what there was. */
  readonly states: { readonly number: number; readonly content: Record<string, string> }[] = [];
  #step = 0;

  constructor() {
    this.#note();
  }

  step(): void {
    const { session } = this.store;
    this.#step++;
    if (random(2) === 0) session.send(request(this.#step));
    else {
      session.send('MULTI');
      for (let i = 2 + random(4); i > 0; i--) session.send(request(this.#step));
      session.send('EXEC');
    }
    this.#note();
  }

  #note(): void {
    const { keyspace, session } = this.store;
    this.states.push({
      number: Atomics.load(keyspace.memory.ctl, Super.EFFECTS_NUMBER_WORD),
      content: contentOf(keyspace, KEYS, 1, session),
    });
  }

  /** Some steps, with whatever the log's thread and that of a checkpoint may be at meanwhile. */
  goOn(steps: number): void {
    const { store } = this;
    const { writer } = store;
    for (let i = 0; i < steps; i++) {
      this.step();
      writer.policy = random(4) === 0 ? 'always' : 'no';
      if (random(3) === 0) writer.turn();
      if (this.#isCheckpointing || random(12) !== 0) continue;
      this.#isCheckpointing = true;
      writer.beginCheckpoint();
    }
  }

  #isCheckpointing = false;

  checkpoint(): void {
    if (!this.#isCheckpointing) return;
    this.#isCheckpointing = false;
    this.store.writeDraft(() => {
      if (random(4) === 0) this.step();
    });
    this.store.writer.endCheckpoint(1);
    if (random(2) === 0) this.store.writer.turn();
  }
}

/** Takes blocks away of what is not persistent: records from that number on. */
function cutPower(folder: string, persistent: number): void {
  const number = listFiles(folder).segments.at(-1) as number;
  const path = segmentPath(folder, number);
  const bytes = readFileSync(path);
  let at: number = Segment.HEADER_BYTES;
  let kept = 0;
  while (at + Group.HEADER_BYTES <= bytes.length && bytes.readUInt32LE(at + Group.MAGIC_WORD * 4) === Group.MAGIC) {
    const end = at + Group.HEADER_BYTES + bytes.readUInt32LE(at + Group.BYTES_WORD * 4);
    if (bytes.readInt32LE(at + Group.CUT_WORD * 4) <= persistent) kept = end;
    at = end;
  }
  const fd = openSync(path, 'r+');
  for (let block = 0; block < at; block += BLOCK_BYTES) {
    if (random(2) === 0) continue;
    const from = Math.max(block, kept);
    const end = Math.min(block + BLOCK_BYTES, at);
    if (from < end) writeSync(fd, Buffer.alloc(end - from), 0, end - from, from);
  }
  closeSync(fd);
}

it('after a power cut the store is what it was after some step', { timeout: 60_000 + HISTORIES * 20_000 }, async () => {
  for (let round = 0; round < HISTORIES; round++) {
    seed = Number(process.env.ENTRESOL_SEED ?? 500 + round);
    const what = `seed ${seed}`;
    const history = new History();
    const { store, states } = history;
    for (let cut = 0; cut < CUTS; cut++) {
      history.goOn(1 + random(STEPS_BETWEEN));
      if (random(2) === 0) history.checkpoint();
      const persistent = Atomics.load(store.keyspace.memory.ctl, Super.EFFECTS_PERSISTENT_WORD);
      const files = store.copyFiles();
      cutPower(files, persistent);
      const { keyspace } = await replayFiles(files);
      const found = contentOf(keyspace, KEYS);
      const shown = JSON.stringify(found);
      const may = states.filter(({ number }) => number >= persistent);
      const isOneOf = may.some(({ content }) => JSON.stringify(content) === shown);
      if (!isOneOf) expect(found, `${what}, cut ${cut}, ${may.length} states`).toEqual(may[0].content);
    }
    store.writer.close();
  }
});
