/** flush noop version verbosity quit stat of the binary protocol. */
import { Closing } from '../../../protocol/driver.js';
import { BinaryRecord, readUint32 } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Status } from '../../../protocol/memcached/binary-codes.js';
import type { MemcachedContext } from '../context.js';
import { flush } from '../effects.js';
import { answerStats } from '../stats.js';
import { VERSION } from '../version.js';

export function flushAll(context: MemcachedContext): void {
  if (!context.settings.memcachedFlush) return context.reply.binary.error(Status.AUTH_ERROR);
  const { u8 } = context.input;
  const start = context.binaryWord(BinaryRecord.start);
  flush(context, u8[start + BinaryHeader.EXTRAS_LENGTH] === 0 ? 0 : readUint32(u8, start + BinaryHeader.BYTES));
  if (!context.isQuiet) context.reply.binary.done(0);
}

export function noop(context: MemcachedContext): void {
  context.reply.binary.done(0);
}

export function version(context: MemcachedContext): void {
  context.reply.binary.text(VERSION);
}

/** Accepted, as in the text protocol; 1.6.18 itself does not know this opcode of the published protocol. */
export function verbosity(context: MemcachedContext): void {
  context.reply.binary.done(0);
}

export function quit(context: MemcachedContext): void {
  if (!context.isQuiet) context.reply.binary.done(0);
  context.client.closing = Closing.AFTER_REPLY;
}

/** The key names the statistics, with its arguments; the last response of many has an empty body. */
export function stat(context: MemcachedContext): void {
  const { binary } = context.reply;
  const words = context
    .keyText()
    .split(' ')
    .filter((word) => word !== '');
  const request = binary.request;
  const send = (name: string, value: string | number): void => {
    binary.answerAgain(request);
    binary.stat(name, String(value));
  };
  const end = (): void => send('', '');
  answerStats(context, words, {
    stat: send,
    end,
    text: (name, lines) => {
      send(name, lines);
      end();
    },
    done: end,
    refuse: () => binary.error(Status.NOT_FOUND),
  });
}
