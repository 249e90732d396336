/**
 * What runs inside the virtual machine (dax-machine.ts), on a folder of a real DAX file system. Prints one line for each thing that the
 * test outside looks at.
 *
 *     write     doctor; a pool whose capacity tier is mapped with MAP_SYNC; items that move there; then records, each persisted
 *               before its number is printed, until the power is cut
 *     verify    after the cut: how many whole records the capacity file holds from the first on; a pool in the same folder
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Bytes } from '../../dist/layout/bytes.js';
import { addon } from '../../dist/native/addon.js';
import { attach, detach } from '../../dist/store/attach.js';
import { findStore, openStore } from '../../dist/store/open.js';

const POOL = '/mnt/pool';
const MIB = 2 ** 20;
const OPTIONS = { pool: POOL, dramBytes: 16 * MIB, capacityBytes: 64 * MIB, tier: 'auto', policy: 'noeviction' };
const ITEMS = 15_000;
const VALUE_BYTES = 1000;
/** Constants of src/layout, which have no values in dist. */
const STRING = 1;
const ARENA_SHIFT = 10;

/** Records lie in the tier's last pages, which the items do not reach. */
const RECORDS_AT = 40 * MIB;
const RECORD_BYTES = 4096 + 64; // not aligned to pages: some cross one
const RECORDS_MAX = Math.floor((24 * MIB) / RECORD_BYTES);

function say(line) {
  process.stdout.write(`${line}\n`);
}

/** Fills a record: its number, then bytes that follow from it, then the check word over both. */
function fill(bytes, arena, at, number) {
  const words = new DataView(bytes.buffer, at, RECORD_BYTES);
  words.setUint32(0, number);
  for (let i = 4; i < RECORD_BYTES - 4; i += 4) words.setUint32(i, Math.imul(number + 1, i) >>> 0);
  words.setUint32(RECORD_BYTES - 4, addon.crc32c(arena, at, RECORD_BYTES - 4, 0));
}

function isWhole(bytes, arena, at, number) {
  const words = new DataView(bytes.buffer, at, RECORD_BYTES);
  if (words.getUint32(0) !== number) return false;
  return words.getUint32(RECORD_BYTES - 4) === addon.crc32c(arena, at, RECORD_BYTES - 4, 0);
}

/** True when the kernel keeps the file's mapping synchronous: the flag `sf` of its lines in smaps. */
function isMappedSync(path) {
  const parts = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const own = parts.filter((part) => part.split('\n')[0].includes(path));
  return own.length > 0 && own.every((part) => /^VmFlags:.* sf( |$)/m.test(part));
}

function doctor() {
  const { stdout, stderr, status } = spawnSync(
    'node',
    ['bin/entresol.js', 'doctor', POOL, '--json', '--dram', '16mb', '--capacity', '64mb'],
    { encoding: 'utf8' },
  );
  say(`DOCTOR ${status} ${JSON.stringify(status === null || stdout === '' ? { stderr } : JSON.parse(stdout))}`);
}

/** More than DRAM holds, so that they move to the capacity tier; all are read back. */
function storeItems(keyspace) {
  const key = Bytes.allocate(8);
  let intact = 0;
  for (let i = 0; i < ITEMS; i++) {
    key.view.setInt32(0, i);
    const hash = keyspace.hash(0, key, 0, 8);
    if (!keyspace.stage(hash, 0, key, 0, 8, VALUE_BYTES)) throw new Error(`no room for item ${i}`);
    keyspace.staged.u8.fill(i & 0xff, keyspace.stagedOffset, keyspace.stagedOffset + VALUE_BYTES);
    keyspace.lock(hash);
    keyspace.commit(STRING, 0, 0, 0);
    keyspace.unlock(hash);
  }
  for (let i = 0; i < ITEMS; i++) {
    key.view.setInt32(0, i);
    const hash = keyspace.hash(0, key, 0, 8);
    keyspace.lock(hash);
    const isThere = keyspace.find(hash, 0, key, 0, 8);
    if (isThere && keyspace.value.u8[keyspace.valueOffset + VALUE_BYTES - 1] === (i & 0xff)) intact++;
    keyspace.unlock(hash);
  }
  say(`ITEMS intact=${intact} demoted=${keyspace.stats().demoted}`);
}

/** The capacity tier, whole: it is smaller than an arena. */
function capacityArena({ memory }) {
  return memory.arenas[memory.capacityBase >>> ARENA_SHIFT];
}

function openPool() {
  const handle = openStore(OPTIONS);
  const keyspace = attach(handle);
  say(`TIER ${handle.tier} mapped-sync=${isMappedSync(handle.capacityPath)}`);
  storeItems(keyspace);
  return keyspace;
}

function write() {
  doctor();
  const keyspace = openPool();
  const bytes = capacityArena(keyspace);
  for (let number = 0; number < RECORDS_MAX; number++) {
    const at = RECORDS_AT + number * RECORD_BYTES;
    fill(bytes.u8, bytes.arena, at, number);
    addon.persist(bytes.arena, at, RECORD_BYTES);
    say(`PERSISTED ${number}`);
  }
  detach(keyspace);
}

function verify() {
  const fd = addon.openFile(`${POOL}/capacity.entresol`, false, false);
  const arena = addon.mapArena(fd, 0, OPTIONS.capacityBytes, { sync: true });
  const bytes = new Uint8Array(addon.wrapArena(arena));
  let whole = 0;
  while (whole < RECORDS_MAX && isWhole(bytes, arena, RECORDS_AT + whole * RECORD_BYTES, whole)) whole++;
  say(`WHOLE ${whole}`);
  addon.releaseArena(arena);
  addon.closeFile(fd);
  // DRAM is empty after a boot, so is a volatile pool; its folder and its files are used again.
  if (findStore(POOL) !== null) throw new Error('a pool without its DRAM tier was found');
  detach(openPool());
}

const [, , what] = process.argv;
if (what === 'write') write();
else if (what === 'verify') verify();
else throw new Error(`unknown task ${what}`);
