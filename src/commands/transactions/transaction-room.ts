/**
 * Takes the memory that a transaction will need before its first command runs.
 *
 * A full store makes room by evicting, which ends what has been journaled so far: a crash after it would leave a part of the transaction.
 * Sizes are estimates: what a command is given, and what its keys hold now. Invariant: nothing here changes a key. Where an estimate
 * falls short (SETRANGE far behind the end, more than PARKED_SLOTS values) room is made in the middle, and only crash atomicity is lost.
 */
import { itemBytes } from '../../layout/item.js';
import { Page } from '../../layout/location.js';
import { MAX_CHUNK_UNITS } from '../../memory/slab-classes.js';
import type { Context } from '../context.js';
import { extractKeys } from '../keys.js';
import { Flag } from '../spec.js';
import type { Transaction } from './transaction.js';

/** Slab classes that one transaction may need a page of each for. */
const CLASSES_MAX = 64;

/** What grows beyond the largest chunk takes pages, for which nothing is set aside. */
const CHUNK_BYTES_MAX = MAX_CHUNK_UNITS * Page.UNIT_BYTES;

/** The keys' locks are held. */
export function reserveRoom(context: Context, transaction: Transaction): void {
  const { client, keyspace } = context;
  const { growingKeys, queuedBytes } = transaction;
  if (growingKeys === 0) return;
  // Mostly there is room whatever the keys hold: then nobody needs to look for them.
  const most = growingKeys * CHUNK_BYTES_MAX + queuedBytes;
  if (keyspace.pool.hasRoomFor(Math.ceil(most / Page.BYTES) + Math.min(growingKeys, CLASSES_MAX))) return;
  const sizes: number[] = [];
  let total = 0;
  for (let i = 0; i < transaction.count; i++) {
    const command = transaction.commands[i];
    if (!command.has(Flag.DENYOOM)) continue;
    context.bind(client, transaction.bytes, transaction.args, transaction.start(i), transaction.argc(i));
    context.command = command;
    const keyCount = extractKeys(context, command);
    for (let k = 0; k < keyCount; k++) {
      const size = sizeOf(context, k, keyCount);
      sizes.push(size);
      total += size;
    }
  }
  const pages = Math.ceil(total / Page.BYTES) + Math.min(sizes.length, CLASSES_MAX);
  if (keyspace.pool.hasRoomFor(pages)) return;
  keyspace.reserveIndex(sizes.length);
  for (const size of sizes) if (!keyspace.reserve(size)) break;
}

/** Bytes of the item that the command may store under its key number `k`. */
function sizeOf(context: Context, k: number, keyCount: number): number {
  const { command, keyArguments } = context;
  const key = keyArguments[k];
  const keyLength = context.argLength(key);
  if (command.largeArgument > 0) return itemBytes(keyLength, context.argLength(command.largeArgument));
  let given = 0;
  const end = k + 1 < keyCount ? keyArguments[k + 1] : context.argc;
  for (let i = key + 1; i < end; i++) given += context.argLength(i);
  // MSET and the like: what is given is the value.
  if (keyCount > 1 && end === key + 2) return itemBytes(keyLength, given);
  const held = context.find(context.hashOf(key), key) ? context.keyspace.valueLength : 0;
  return itemBytes(keyLength, held + given);
}
