/**
 * SASL over the binary protocol: mechanism PLAIN, "authorisation identity NUL user NUL password", in one step or in two.
 * Which users there are is the affair of credentials.ts.
 */
import { BinaryRecord } from '../../../protocol/memcached/binary.js';
import { Opcode, Status } from '../../../protocol/memcached/binary-codes.js';
import { countAuthentication } from '../auth.js';
import type { MemcachedContext } from '../context.js';

const MECHANISM = 'PLAIN';
/** Longest name of a mechanism. */
const MAX_MECHANISM_BYTES = 32;
/** Longest message of a mechanism. */
export const MAX_SASL_BYTES = 16_384;

const encoder = new TextEncoder();
const NOTHING = new Uint8Array(0);

export function saslList(context: MemcachedContext): void {
  if (!context.credentials.areNeeded) return context.reply.binary.error(Status.UNKNOWN_COMMAND);
  context.reply.binary.text(MECHANISM);
}

export function saslAuthenticate(context: MemcachedContext): void {
  const { client, credentials } = context;
  const { binary } = context.reply;
  if (!credentials.areNeeded) return binary.error(Status.UNKNOWN_COMMAND);
  const length = context.binaryWord(BinaryRecord.valueLength);
  if (context.keyLength > MAX_MECHANISM_BYTES || length > MAX_SASL_BYTES) return binary.error(Status.INVALID);
  const isStep = context.binaryWord(BinaryRecord.opcode) === Opcode.SASL_STEP;
  const isKnown = context.keyText() === MECHANISM && (!isStep || client.isSaslStarted);
  if (isKnown && !isStep && length === 0) {
    client.isSaslStarted = true;
    return binary.failure(Status.AUTH_CONTINUE, NOTHING);
  }
  const isRight = isKnown && isPlainRight(context, length);
  countAuthentication(context.counters, isRight);
  if (!isRight) return binary.error(Status.AUTH_ERROR);
  client.isSaslStarted = false;
  client.isAuthenticated = true;
  binary.failure(Status.OK, AUTHENTICATED);
}

const AUTHENTICATED = encoder.encode('Authenticated');

function isPlainRight(context: MemcachedContext, length: number): boolean {
  const offset = context.binaryWord(BinaryRecord.valueOffset);
  const message = Buffer.from(context.input.u8.slice(offset, offset + length));
  const user = message.indexOf(0) + 1;
  const password = message.indexOf(0, user) + 1;
  if (user === 0 || password === 0) return false;
  return context.credentials.areRight(message.subarray(user, password - 1), message.subarray(password));
}
