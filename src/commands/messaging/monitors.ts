/**
 * MONITOR: every command of every worker as a line to the clients that asked for it.
 *
 * Whoever executes a command makes the line and sends it to the workers that have monitors; Super.MONITORS_WORD says whether
 * there are any, so a command without monitors costs one load.
 */
import { Bytes } from '../../layout/bytes.js';
import { MessageKind } from '../../layout/mailbox.js';
import { Participant, ParticipantRole } from '../../layout/superblock.js';
import type { Output } from '../../protocol/output.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Attention, type Client } from '../clients/client.js';
import type { Context } from '../context.js';

const ESCAPES = new Map([
  [0x5c, '\\\\'],
  [0x22, '\\"'],
  [0x0a, '\\n'],
  [0x0d, '\\r'],
  [0x09, '\\t'],
  [0x07, '\\a'],
  [0x08, '\\b'],
]);

export class Monitors {
  readonly #keyspace: Keyspace;
  readonly #clients = new Set<Client>();

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  add(client: Client): void {
    this.#clients.add(client);
    client.attention |= Attention.MONITOR;
    this.#keyspace.interests.setRole(ParticipantRole.MONITORS, true);
  }

  remove(client: Client): void {
    if (!this.#clients.delete(client)) return;
    client.attention &= ~Attention.MONITOR;
    if (this.#clients.size === 0) this.#keyspace.interests.setRole(ParticipantRole.MONITORS, false);
  }

  /** The bound request has run. */
  tell(context: Context): void {
    const line = Bytes.from(lineOf(context));
    const { interests, mailboxes } = this.#keyspace;
    for (let seat = 0; seat < Participant.MAX; seat++) {
      if (!interests.hasRole(seat, ParticipantRole.MONITORS)) continue;
      mailboxes.send(seat, MessageKind.MONITOR, 0, 0, line, 0, line.length, line, 0, 0);
    }
  }

  deliver(output: Output, record: Bytes, offset: number, length: number): void {
    for (const client of this.#clients) {
      output.begin(client.conn);
      output.ascii('+');
      output.range(record, offset, length);
      output.ascii('\r\n');
      output.end();
    }
  }
}

function lineOf(context: Context): Uint8Array {
  const { client, executor } = context;
  const nowMs = performance.timeOrigin + performance.now();
  const seconds = Math.floor(nowMs / 1000);
  const micros = Math.floor((nowMs - seconds * 1000) * 1000);
  let line = `${seconds}.${String(micros).padStart(6, '0')} [${client.db} ${executor.hub.isOf(executor) ? client.address : 'lua'}]`;
  const hidden = secretFrom(context);
  for (let i = 0; i < context.argc; i++) {
    if (i >= hidden) line += ' "(redacted)"';
    // A large value that went straight into the store is not in the input.
    else if (context.largeStaged && i === context.command.largeArgument)
      line += ` "... (${context.argLength(i)} bytes)"`;
    else line += ` "${quoted(context.argBytes(i))}"`;
  }
  return Buffer.from(line, 'latin1');
}

/** The first argument that nobody shall see. */
function secretFrom(context: Context): number {
  const { name } = context.command.spec;
  if (name === 'auth') return 1;
  if (name !== 'hello') return context.argc;
  for (let i = 1; i < context.argc; i++) if (context.argIs(i, 'AUTH')) return i + 1;
  return context.argc;
}

function quoted(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) {
    const escaped = ESCAPES.get(byte);
    if (escaped !== undefined) text += escaped;
    else if (byte >= 0x20 && byte < 0x7f) text += String.fromCharCode(byte);
    else text += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}
