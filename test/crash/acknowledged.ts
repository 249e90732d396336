/** What writers have noted of their own keys, compared with what is there after their death. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { Bytes } from '../../src/layout/bytes.js';
import { HASHES } from '../../src/store/collections/collection.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { FIRST_FIELD, OWN_KEYS, verify } from './values.mjs';

/**
 * Every acknowledged write of a (dead) writer is there; the write that was under way when it died is there whole or not at all, and
 * counts as acknowledged from now on. `mayLose`: a key may also be absent.
 */
export function checkWriter(keyspace: Keyspace, ackPath: string, id: number, mayLose: boolean): void {
  const file = readFileSync(ackPath);
  const notes = new Int32Array(file.buffer, file.byteOffset, file.length / 4);
  keyspace.refreshClock();
  keyspace.enterBatch();
  for (let key = 0; key < OWN_KEYS; key++) {
    const at = (id * OWN_KEYS + key) * 2;
    const name = `own:${id}:${key}`;
    const stamp = key < FIRST_FIELD ? stampOf(keyspace, name) : stampOfField(keyspace, `fields:${id}`, name);
    const [intended, acknowledged] = [notes[at], notes[at + 1]];
    const settled = stamp === 0 ? Math.min(acknowledged, 0) : stamp;
    const isRight =
      stamp === 0 ? acknowledged <= 0 || intended < 0 || mayLose : stamp === acknowledged || stamp === intended;
    if (!isRight) throw new Error(`${name}: stamp ${stamp}, acknowledged ${acknowledged}, intended ${intended}`);
    notes[at] = settled;
    notes[at + 1] = settled;
  }
  keyspace.leaveBatch();
  // Only this writer's part: the others go on writing theirs.
  const fd = openSync(ackPath, 'r+');
  writeSync(fd, file, id * OWN_KEYS * 8, OWN_KEYS * 8, id * OWN_KEYS * 8);
  closeSync(fd);
}

function stampOf(keyspace: Keyspace, name: string): number {
  const bytes = Bytes.from(name);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.lock(hash);
  let stamp = 0;
  let problem = '';
  if (keyspace.find(hash, 0, bytes, 0, bytes.length)) {
    problem = verify(name, keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
    stamp = keyspace.value.view.getInt32(keyspace.valueOffset, true);
  }
  keyspace.unlock(hash);
  if (problem !== '') throw new Error(problem);
  return stamp;
}

function stampOfField(keyspace: Keyspace, key: string, field: string): number {
  const bytes = Bytes.from(key);
  const fieldBytes = Bytes.from(field);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  const fields = keyspace.collections[0];
  keyspace.lock(hash);
  let stamp = 0;
  let problem = '';
  fields.open(HASHES, hash, 0, bytes, 0, bytes.length);
  if (fields.seekKey(fieldBytes, 0, fieldBytes.length)) {
    fields.load();
    problem = verify(field, fields.value.u8, fields.valueOffset, fields.valueLength);
    stamp = fields.value.view.getInt32(fields.valueOffset, true);
  }
  keyspace.unlock(hash);
  if (problem !== '') throw new Error(problem);
  return stamp;
}
