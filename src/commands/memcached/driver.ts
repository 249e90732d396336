/**
 * The memcached side of a connection. The first byte of a connection decides which of the two protocols it speaks, as in
 * memcached: 0x80 begins a binary request, anything else a line (unless the setting memcached-protocol has decided before).
 *
 * Invariant: what feed() reports as consumed has been executed and answered, or is a part of a large value that lies in its
 * staged item already; everything behind it is delivered again.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Closing, type Driver } from '../../protocol/driver.js';
import { Magic } from '../../protocol/memcached/binary-codes.js';
import { OPCODE_NAMES } from '../../protocol/memcached/binary-names.js';
import { COMMAND_NAMES } from '../../protocol/memcached/command-names.js';
import { Writer } from '../../protocol/memcached/writer.js';
import type { Output } from '../../protocol/output.js';
import type { ClientFilter } from '../control.js';
import type { Environment } from '../environment.js';
import { BinaryFront } from './binary/front.js';
import { MemcachedClient, Protocol } from './client.js';
import { DB, MemcachedContext } from './context.js';
import { Datagrams } from './datagrams.js';
import { PendingValues } from './pending-values.js';
import { TextFront } from './text-front.js';
import { WatchKind } from './watch.js';

export class MemcachedDriver implements Driver<MemcachedClient> {
  private readonly environment: Environment;
  private readonly context: MemcachedContext;
  private readonly pending: PendingValues;
  private readonly text: TextFront;
  private readonly binary: BinaryFront;
  private readonly datagrams: Datagrams;

  constructor(environment: Environment, output: Output) {
    this.environment = environment;
    this.context = new MemcachedContext(environment, new Writer(output), new MemcachedClient(0, -1, '', false));
    this.pending = new PendingValues(this.context);
    this.text = new TextFront(environment, output, this.context, this.pending);
    this.binary = new BinaryFront(environment, output, this.context, this.pending);
    this.datagrams = new Datagrams(this.context, output);
  }

  open(id: number, conn: number, address: string): MemcachedClient {
    const { context } = this;
    const client = new MemcachedClient(id, conn, address, !context.credentials.areNeeded);
    client.descriptor = context.control?.descriptorOf(client) ?? -1;
    if (context.watch.isWatched(WatchKind.CONNECTIONS)) context.watch.opened(client, client.descriptor);
    return client;
  }

  feed(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    client.again = false;
    client.awaitsValue = false;
    client.intoLength = 0;
    this.context.client = client;
    // CLIENT PAUSE does not hold these clients up: they may write.
    this.environment.keyspace.keepsExpired = false;
    if (client.protocol === Protocol.UNKNOWN) {
      client.protocol = this.chooseProtocol(input.u8[offset]);
    }
    try {
      let position = offset;
      if (client.swallowBytes > 0) position = this.pending.swallow(client, position, end);
      if (client.protocol === Protocol.BINARY) return this.binary.requests(client, input, position, end) - offset;
      return this.text.requests(client, input, position, end) - offset;
    } catch (error) {
      this.fault(error);
      // A binary client takes this for a broken response, and so closes too.
      this.context.reply.text('SERVER_ERROR internal error\r\n');
      client.closing = Closing.AFTER_REPLY;
      return end - offset;
    }
  }

  consumedByNow(): number {
    throw new Error('memcached commands run no scripts');
  }

  /** The protocol has no word for it. */
  answersShutOut(): boolean {
    return false;
  }

  resumeInto(client: MemcachedClient): void {
    client.intoLength = 0;
    if (client.large === null) return;
    client.large.isComplete = true;
    this.context.client = client;
    try {
      // Nothing follows the value in the binary protocol, so no input need come for it to be done.
      if (client.protocol === Protocol.BINARY) this.binary.finishValue(client);
    } catch (error) {
      this.fault(error);
      client.closing = Closing.NOW;
    }
  }

  closed(client: MemcachedClient): void {
    this.pending.drop(client);
    const { watch } = this.context;
    if (client.isWatching) watch.end(client);
    if (watch.isWatched(WatchKind.CONNECTIONS)) watch.closed(client, client.descriptor);
  }

  datagram(slot: number, input: Bytes, offset: number, end: number): void {
    try {
      this.datagrams.answer(slot, input, offset, end);
    } catch (error) {
      // No reply: to a client a lost datagram is a miss.
      this.fault(error);
    }
  }

  describe(client: MemcachedClient) {
    const names = client.protocol === Protocol.BINARY ? OPCODE_NAMES : COMMAND_NAMES;
    return {
      name: '',
      user: 'default',
      db: DB,
      flags: client.closing !== Closing.NO ? 'c' : client.isWatching ? 'O' : 'N',
      multi: -1,
      watch: 0,
      queryBytes: 0,
      transactionBytes: 0,
      respVersion: 0,
      lastCommand: names[client.lastCommand] ?? 'unknown',
      commands: client.commands,
      libraryName: '',
      libraryVersion: '',
      state: client.isWatching ? 'conn_watch' : client.awaitsValue ? 'conn_nread' : 'conn_read',
    };
  }

  matches(_client: MemcachedClient, filter: ClientFilter): boolean {
    if (filter.type !== undefined && filter.type !== 'normal') return false;
    if (filter.user !== undefined && filter.user !== 'default') return false;
    return filter.name === undefined || filter.name === '';
  }

  mayStay(): boolean {
    return true;
  }

  isOpen(): boolean {
    return !this.context.credentials.areNeeded;
  }

  refusal(reason: 'maxclients' | 'protected'): string {
    if (reason === 'maxclients') return 'ERROR Too many open connections\r\n';
    return 'SERVER_ERROR protected mode: without a password (requirepass) this server serves its own machine only\r\n';
  }

  private chooseProtocol(firstByte: number): Protocol {
    const { memcachedProtocol } = this.environment.settings;
    if (memcachedProtocol === 'auto') return firstByte === Magic.REQUEST ? Protocol.BINARY : Protocol.TEXT;
    return memcachedProtocol === 'binary' ? Protocol.BINARY : Protocol.TEXT;
  }

  /** A handler threw: our mistake. Nothing stays locked, the others are served on. */
  private fault(error: unknown): void {
    this.context.abandon();
    this.environment.reportFault(error);
  }
}
