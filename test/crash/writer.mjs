/**
 * One participant under random load, made to die: a worker thread or a process that writes, edits, deletes, pins, parks, flushes and
 * closes the gate until it is killed (or kills itself at its n-th step in shared memory).
 *
 * Keys of its own: before each write it notes the intent, after it the acknowledgement, in a file that outlives it. Keys that all share carry
 * their name, a stamp and a body made from both, and are checked whenever they are read. Runs from dist/.
 */
import { openSync, writeSync } from 'node:fs';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { Bytes } from '../../dist/layout/bytes.js';
import { Held } from '../../dist/memory/held.js';
import { Journal } from '../../dist/memory/journal.js';
import { Memory } from '../../dist/memory/memory.js';
import { addon } from '../../dist/native/addon.js';
import { CheckpointWriter } from '../../dist/rdb/checkpoint-writer.js';
import { attach } from '../../dist/store/attach.js';
import { HASHES, LISTS, SETS, SORTED_SETS, STREAMS } from '../../dist/store/collections/collection.js';
import { copyCollection } from '../../dist/store/collections/copy-collection.js';
import { moveCollection } from '../../dist/store/collections/rekey.js';
import { Waits } from '../../dist/store/waits.js';
import { WriteBehind } from '../../dist/store/write-behind.js';
import { touchStream } from './streams.mjs';
import { FIRST_FIELD, makeValue, OWN_KEYS, SHARED_KEYS, verify } from './values.mjs';

const options = isMainThread ? JSON.parse(process.argv[2]) : workerData;
const { handle, id, seed, dieAt, ackPath, large, exclusive } = options;

/** As the embedded library works: no batches, one shard at a time. */
const { single, resizes } = options;

let state = seed | 0 || 1;
function random(limit) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % limit;
}

function fail(message) {
  console.error(`writer ${id}: ${message}`);
  process.exit(3);
}

/** Dies at the n-th of these calls: between any two stores that matter lies one. */
function armDeath(steps) {
  let left = steps;
  const step = () => {
    if (--left <= 0) process.kill(process.pid, 'SIGKILL');
  };
  const wrap = (prototype, name) => {
    const original = prototype[name];
    prototype[name] = function (...args) {
      step();
      const result = original.apply(this, args);
      step();
      return result;
    };
  };
  for (const name of ['save', 'saveRange', 'commit', 'saveAndCopy', 'saveAlloc', 'commitAlloc', 'clearWord'])
    wrap(Journal.prototype, name);
  for (const name of ['set', 'clear', 'defer']) wrap(Held.prototype, name);
  for (const name of ['lock', 'unlock', 'tryLock']) wrap(Memory.prototype, name);
}

if (dieAt > 0) armDeath(dieAt);
const keyspace = attach(handle);
const writeBehind = options.writesBehind ? new WriteBehind(keyspace, new CheckpointWriter(keyspace)) : null;
if (single) keyspace.gate.becomeUnbatched();
keyspace.gate.lone.become();
const ackFd = openSync(ackPath, 'r+');
const record = new Int32Array(2);

/** File of Int32 (intent, acknowledged) pairs, a pair for each own key; a negative stamp is a removal. */
function note(key, which, stamp) {
  record[0] = stamp;
  writeSync(ackFd, new Uint8Array(record.buffer, 0, 4), 0, 4, ((id * OWN_KEYS + key) * 2 + which) * 4);
}

function size() {
  const kind = random(100);
  if (kind < 80) return 20 + random(400);
  if (kind < 92) return 20 + random(6000);
  if (kind < 98 || large === 0) return 20 + random(60_000);
  return 20 + random(large);
}

let stamp = options.firstStamp;

function lock(hash) {
  if (single) keyspace.lockUnbatched(hash);
  else keyspace.lock(hash);
  if (keyspace.memory.isLone && !toldLone) {
    toldLone = true;
    process.send?.('lone');
  }
}
let toldLone = false;

function hashOf(db, bytes) {
  return keyspace.hash(db, bytes, 0, bytes.length);
}

/** Values come from an arena, as a pump's input does. */
const INPUT_BYTES = 2 ** 20;
const inputArena = addon.allocateArena(INPUT_BYTES, {});
const input = new Bytes(addon.wrapArena(inputArena), inputArena);

/** As the SET command does it: over the old value where that may be, else staged. */
function set(db, name, value) {
  const bytes = Bytes.from(name);
  const hash = hashOf(db, bytes);
  const expiryMs = random(20) === 0 ? keyspace.nowMs + 3_600_000 : 0;
  const overwrites = keyspace.prefersOverwrite(bytes.length, value.length);
  const stage = () => {
    if (!keyspace.stage(hash, db, bytes, 0, bytes.length, value.length)) return false;
    keyspace.staged.u8.set(value, keyspace.stagedOffset);
    return true;
  };
  if (!overwrites && !stage()) return false;
  lock(hash);
  let stored = false;
  if (overwrites && keyspace.find(hash, db, bytes, 0, bytes.length)) {
    input.u8.set(value);
    stored = keyspace.overwrite(input, 0, value.length, 0, expiryMs);
  }
  if (!stored && (!overwrites || stage())) stored = keyspace.commit(1, 0, 0, expiryMs);
  keyspace.unlock(hash);
  return stored;
}

function withFound(db, name, run) {
  const bytes = Bytes.from(name);
  const hash = hashOf(db, bytes);
  lock(hash);
  if (keyspace.find(hash, db, bytes, 0, bytes.length)) run();
  keyspace.unlock(hash);
}

function check(name) {
  const problem = verify(name, keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
  if (problem !== '') fail(problem);
}

function writeOwn() {
  const key = random(OWN_KEYS);
  const name = `own:${id}:${key}`;
  stamp++;
  if (key >= FIRST_FIELD) {
    writeField(key, name);
    return;
  }
  const kind = random(10);
  if (kind < 6) {
    note(key, 0, stamp);
    if (set(0, name, makeValue(name, stamp, size()))) note(key, 1, stamp);
  } else if (kind < 7) {
    note(key, 0, -stamp);
    withFound(0, name, () => keyspace.remove());
    note(key, 1, -stamp);
  } else {
    let done = false;
    const mine = stamp;
    withFound(0, name, () => {
      check(name);
      note(key, 0, mine);
      const { valueLength } = keyspace;
      if (!keyspace.edit(0, valueLength)) return;
      keyspace.value.u8.set(makeValue(name, mine, valueLength), keyspace.valueOffset);
      done = true;
    });
    if (done) note(key, 1, mine);
  }
}

/** A field of the writer's own hash, which many of them make a tree. */
function writeField(key, name) {
  const bytes = Bytes.from(`fields:${id}`);
  const field = Bytes.from(name);
  const hash = hashOf(0, bytes);
  const removes = random(4) === 0;
  const mine = removes ? -stamp : stamp;
  const value = Bytes.from(makeValue(name, stamp, 20 + random(random(8) === 0 ? 3000 : 100)));
  note(key, 0, mine);
  lock(hash);
  const fields = keyspace.collections[0];
  fields.open(HASHES, hash, 0, bytes, 0, bytes.length);
  let change = 0;
  if (fields.seekKey(field, 0, field.length)) {
    fields.load();
    const problem = verify(name, fields.value.u8, fields.valueOffset, fields.valueLength);
    if (problem !== '') fail(problem);
    change = removes ? fields.remove() : fields.replaceValue(value, 0, value.length, 0);
  } else if (!removes) {
    change = fields.insertPair(field, 0, field.length, value, 0, value.length, 0);
  }
  keyspace.unlock(hash);
  if (change === 0) note(key, 1, mine);
}

const SHAPES = [HASHES, SETS, SORTED_SETS, LISTS, STREAMS].map((shape) => ({ ...shape, packedEntriesMax: 20 }));

/** Bursts of changes to collections that all share, up to some thousands of elements each. */
function touchCollection() {
  const kind = random(SHAPES.length);
  const shape = SHAPES[kind];
  const bytes = Bytes.from(`collection:${kind}:${random(4)}`);
  const hash = hashOf(6, bytes);
  lock(hash);
  const c = keyspace.collections[1];
  c.open(shape, hash, 6, bytes, 0, bytes.length);
  if (c.exists && random(60) === 0) c.removeKey();
  if (shape.type === STREAMS.type) {
    touchStream(c, keyspace.nowMs, random);
    keyspace.unlock(hash);
    return;
  }
  const grows = c.count < 1500 ? random(4) > 0 : random(3) === 0;
  for (let i = random(40); i >= 0; i--) {
    const member = Bytes.from(`m${random(4000)}`.padEnd(random(random(30) === 0 ? 2500 : 40), '.'));
    if (kind === 3) {
      c.seekRank(random(c.count + 1));
      if (grows) c.insert(member, 0, member.length);
      else if (!c.atEnd) c.remove();
      continue;
    }
    const found = c.seekKey(member, 0, member.length);
    if (found && !grows) c.remove();
    else if (found && kind === 0) c.replaceValue(member, 0, random(member.length + 1), 0);
    else if (!found && kind === 0) c.insertPair(member, 0, member.length, member, 0, member.length, 0);
    else if (!found && kind === 1) c.insert(member, 0, member.length);
    else if (!found) c.insertScored(random(20), member, 0, member.length);
    else if (kind === 2) c.changeScore(random(20), member, 0, member.length);
  }
  keyspace.unlock(hash);
}

/** RENAME and COPY of shared collections. */
function carryCollection() {
  const kind = random(SHAPES.length);
  const from = Bytes.from(`collection:${kind}:${random(4)}`);
  const to = Bytes.from(`collection:${kind}:${random(4)}`);
  if (from.u8.every((byte, i) => byte === to.u8[i])) return;
  const { lockSet } = keyspace;
  lockSet.clear();
  lockSet.add(hashOf(6, from));
  lockSet.add(hashOf(6, to));
  lockSet.acquire();
  if (keyspace.find(hashOf(6, from), 6, from, 0, from.length)) {
    const carry = random(3) === 0 ? copyCollection : moveCollection;
    carry(keyspace, hashOf(6, to), 6, to, 0, to.length);
  }
  lockSet.release();
}

function touchShared() {
  const name = `shared:${random(SHARED_KEYS)}`;
  const kind = random(10);
  if (kind < 4) {
    set(0, name, makeValue(name, ++stamp, size()));
  } else if (kind < 9) {
    withFound(0, name, () => {
      keyspace.access();
      check(name);
    });
  } else {
    withFound(0, name, () => keyspace.remove());
  }
}

/** Three keys written as one: whoever locks all three sees one stamp. */
function touchGroup() {
  const group = random(8);
  const names = [0, 1, 2].map((i) => `group:${group}:${i}`);
  const keys = names.map((name) => Bytes.from(name));
  const { lockSet } = keyspace;
  lockSet.clear();
  for (const bytes of keys) lockSet.add(hashOf(2, bytes));
  lockSet.acquire();
  if (random(2) === 0) {
    stamp++;
    const isFound = (i) => keyspace.find(hashOf(2, keys[i]), 2, keys[i], 0, keys[i].length);
    let ok = true;
    for (let i = 0; i < 3 && ok; i++) {
      const value = makeValue(names[i], stamp, 200 + group);
      // As DEL and SET in one transaction: the new entry may get the old one's place.
      if (random(4) === 0 && isFound(i)) keyspace.remove();
      ok = keyspace.stage(hashOf(2, keys[i]), 2, keys[i], 0, keys[i].length, value.length);
      if (!ok) break;
      keyspace.staged.u8.set(value, keyspace.stagedOffset);
      ok = keyspace.commit(1, 0, 0, random(4) === 0 ? keyspace.nowMs + 3_600_000 : 0);
    }
    // No memory for one of them: none of them.
    for (let i = 0; i < 3 && !ok; i++) if (isFound(i)) keyspace.remove();
  } else {
    const stamps = new Set();
    for (let i = 0; i < 3; i++) {
      if (!keyspace.find(hashOf(2, keys[i]), 2, keys[i], 0, keys[i].length)) continue;
      check(names[i]);
      stamps.add(keyspace.value.view.getInt32(keyspace.valueOffset, true));
    }
    if (stamps.size > 1 && options.atomicGroups) fail(`a group of keys has stamps ${[...stamps].join(' ')}`);
  }
  lockSet.release();
}

const pins = [];
const parked = [];

function pinOrPark() {
  const kind = random(4);
  if (kind === 0) {
    const name = `shared:${random(SHARED_KEYS)}`;
    withFound(0, name, () => {
      const token = pins.length < 20 ? keyspace.pin() : 0;
      if (token !== 0) pins.push([token, name, keyspace.value, keyspace.valueOffset, keyspace.valueLength]);
    });
  } else if (kind === 1 && pins.length > 0) {
    const [token, name, bytes, offset, length] = pins.shift();
    const problem = verify(name, bytes.u8, offset, length);
    if (problem !== '') fail(`pinned: ${problem}`);
    keyspace.unpin(token);
  } else if (kind === 2 && parked.length < 10) {
    const name = `shared:${random(SHARED_KEYS)}`;
    const bytes = Bytes.from(name);
    const value = makeValue(name, ++stamp, size());
    if (!keyspace.stage(hashOf(0, bytes), 0, bytes, 0, bytes.length, value.length)) return;
    keyspace.staged.u8.set(value, keyspace.stagedOffset);
    const slot = { held: 0, page: 0, unit: 0 };
    if (!keyspace.parkStaged(slot)) fail('no parking place');
    parked.push([slot, bytes]);
  } else if (parked.length > 0) {
    const [slot, bytes] = parked.shift();
    if (random(3) === 0) {
      keyspace.dropParked(slot);
      return;
    }
    keyspace.unparkStaged(slot, 0);
    const hash = hashOf(0, bytes);
    lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
  }
}

function runAlone() {
  keyspace.closeGate();
  const kind = random(3);
  if (kind === 0) keyspace.flush(3);
  else if (kind === 1) keyspace.swapDatabases(4, 5);
  else touchShared();
  keyspace.openGate();
}

const waits = new Waits(keyspace.memory, keyspace.pool);
const waiting = [];
const subscribed = [];
/** Sequence number of the last message from each participant. */
const heard = new Map();
let sent = 0;

/** A message is its sender's number, as often as a length says that both know. */
function hear(record, at) {
  const word = at >>> 2;
  const sender = (record.i32[word + 1] >>> 8) & 0xff;
  const [stampSent, length] = [record.i32[word + 3], record.i32[word + 4]];
  if ((record.i32[word + 1] & 0xff) !== 7) return; // an invalidation: keys change while we track them
  const start = at + 24;
  for (let i = start; i < start + length; i++) {
    if (record.u8[i] !== (stampSent & 0xff))
      fail(`message ${stampSent} of ${sender} is torn at byte ${i - start} of ${length}`);
  }
  const key = `${sender}:${record.i32[word + 2]}`;
  if (stampSent <= (heard.get(key) ?? 0)) fail(`message ${stampSent} of ${key} comes behind ${heard.get(key)}`);
  heard.set(key, stampSent);
}

function touchMessages() {
  const { interests, mailboxes, patterns } = keyspace;
  const kind = random(9);
  const name = Bytes.from(`channel:${random(200)}`);
  const check = interests.check(name, 0, name.length);
  if (kind < 2) {
    if (subscribed.length < 300 && interests.addSubscribers(3, hashOf(0, name), check, 1))
      subscribed.push([hashOf(0, name), check]);
  } else if (kind < 4 && subscribed.length > 0) {
    const [hash, known] = subscribed.splice(random(subscribed.length), 1)[0];
    interests.addSubscribers(3, hash, known, -1);
  } else if (kind === 4) {
    patterns.add(name, name.length, random(2) === 0 ? 1 : -1);
  } else if (kind === 5) {
    const key = Bytes.from(`shared:${random(SHARED_KEYS)}`);
    const hash = hashOf(0, key);
    lock(hash);
    interests.track(hash, interests.check(key, 0, key.length));
    keyspace.unlock(hash);
  } else if (kind === 6 && mailboxes.open(-1)) {
    mailboxes.drainRing(hear);
  } else if (kind === 7) {
    const length = random(20) === 0 ? random(200_000) : random(500);
    const body = Bytes.allocate(length);
    body.u8.fill(++sent & 0xff);
    // MONITOR's kind; a = whose life this is: a seat has several.
    for (let seat = 0; seat < 8; seat++) mailboxes.send(seat, 7, options.firstStamp, sent, body, 0, length, body, 0, 0);
    if (mailboxes.hasBacklog) mailboxes.flush();
    mailboxes.drainLocal(() => undefined);
  } else if (waiting.length < 20 && mailboxes.open(-1)) {
    const place = waits.create(0, 1, name, Int32Array.of(0, name.length), 0, 1);
    if (place === null) return;
    const key = Bytes.from(`nobody-writes:${random(100)}`);
    const hash = hashOf(0, key);
    const keyCheck = interests.check(key, 0, key.length);
    if (interests.addWaiter(hash, keyCheck, place.page, place.unit, place.ticket))
      waiting.push([place, hash, keyCheck]);
    else waits.cancel(place);
  } else if (waiting.length > 0) {
    const [place, hash, keyCheck] = waiting.splice(random(waiting.length), 1)[0];
    interests.removeWaiter(hash, keyCheck, place.ticket);
    if (!waits.cancel(place)) fail('a wait that nobody served cannot be cancelled');
  }
}

function singleCalls() {
  keyspace.refreshClock();
  for (let i = 0; i < 50; i++) {
    const kind = random(100);
    if (kind < 50) writeOwn();
    else if (kind < 75) touchShared();
    else touchCollection();
  }
}

function turn() {
  if (single) return singleCalls();
  keyspace.refreshClock();
  keyspace.enterBatch();
  for (let i = 0; i < 50; i++) {
    const kind = random(100);
    if (kind < 10) touchMessages();
    else if (kind < 45) writeOwn();
    else if (kind < 62) touchShared();
    else if (kind < 79) touchCollection();
    else if (kind < 80) carryCollection();
    else if (kind < 88) touchGroup();
    else if (kind < 94) pinOrPark();
    else if (kind < 97) set(random(3) + 3, `other:${random(50)}`, makeValue('other', ++stamp, 100));
    else if (kind < 98 && exclusive && i % 10 === 0) runAlone();
  }
  if (random(4) === 0) keyspace.background(300);
  if (writeBehind !== null && random(3) === 0) copyBehind();
  if (resizes !== undefined && random(400) === 0) {
    const [dram, capacity] = resizes[random(resizes.length)];
    keyspace.sizes.set(dram * 2 ** 20, capacity * 2 ** 20);
  }
  keyspace.leaveBatch();
}

/** Some steps of a round of the write-behind, as the durability thread makes them; at times of one that waits for nothing. */
function copyBehind() {
  if (random(20) === 0) writeBehind.beginLast();
  writeBehind.step();
}

let turns = 0;
if (isMainThread) {
  process.send?.('ready');
  for (;;) turn();
} else {
  parentPort.postMessage('ready');
  const progress = new Int32Array(options.progress);
  while (Atomics.load(progress, 0) === 0) {
    turn();
    Atomics.store(progress, 1 + id, ++turns);
  }
  for (const [token] of pins) keyspace.unpin(token);
  for (const [slot] of parked) keyspace.dropParked(slot);
  const { detach } = await import('../../dist/store/attach.js');
  detach(keyspace);
}
