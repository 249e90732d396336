/**
 * Numbers of memcached's binary protocol: header, opcodes, statuses.
 *
 *    0        1        2        3         4        5        6        7
 *   +--------+--------+-----------------+--------+--------+-----------------+
 *   | magic  | opcode | key length      | extras | type 0 | vbucket, status |
 *   +--------+--------+-----------------+--------+--------+-----------------+
 *   | body length (extras + key + value)| opaque (given back as it came)    |
 *   +-----------------------------------+-----------------------------------+
 *   | cas                                                                   |
 *   +-----------------------------------------------------------------------+
 *   | extras, key, value                                                    |
 *
 * All numbers are big-endian. A response has the status where a request has the vbucket.
 */

export const enum BinaryHeader {
  MAGIC = 0,
  OPCODE = 1,
  KEY_LENGTH = 2,
  EXTRAS_LENGTH = 4,
  STATUS = 6,
  BODY_LENGTH = 8,
  OPAQUE = 12,
  CAS = 16,
  BYTES = 24,
}

export const enum Magic {
  REQUEST = 0x80,
  RESPONSE = 0x81,
}

export const enum Opcode {
  GET = 0x00,
  SET = 0x01,
  ADD = 0x02,
  REPLACE = 0x03,
  DELETE = 0x04,
  INCREMENT = 0x05,
  DECREMENT = 0x06,
  QUIT = 0x07,
  FLUSH = 0x08,
  GETQ = 0x09,
  NOOP = 0x0a,
  VERSION = 0x0b,
  GETK = 0x0c,
  GETKQ = 0x0d,
  APPEND = 0x0e,
  PREPEND = 0x0f,
  STAT = 0x10,
  SETQ = 0x11,
  ADDQ = 0x12,
  REPLACEQ = 0x13,
  DELETEQ = 0x14,
  INCREMENTQ = 0x15,
  DECREMENTQ = 0x16,
  QUITQ = 0x17,
  FLUSHQ = 0x18,
  APPENDQ = 0x19,
  PREPENDQ = 0x1a,
  VERBOSITY = 0x1b,
  TOUCH = 0x1c,
  GAT = 0x1d,
  GATQ = 0x1e,
  SASL_LIST = 0x20,
  SASL_AUTH = 0x21,
  SASL_STEP = 0x22,
  GATK = 0x23,
  GATKQ = 0x24,
}

export const enum Status {
  OK = 0x00,
  NOT_FOUND = 0x01,
  EXISTS = 0x02,
  TOO_LARGE = 0x03,
  INVALID = 0x04,
  NOT_STORED = 0x05,
  NON_NUMERIC = 0x06,
  AUTH_ERROR = 0x20,
  AUTH_CONTINUE = 0x21,
  UNKNOWN_COMMAND = 0x81,
  NO_MEMORY = 0x82,
  NOT_SUPPORTED = 0x83,
  TEMPORARY_FAILURE = 0x86,
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The body of an error response, by status; clients show it to people. */
export const STATUS_TEXTS: Uint8Array[] = [];
STATUS_TEXTS[Status.NOT_FOUND] = bytes('Not found');
STATUS_TEXTS[Status.EXISTS] = bytes('Data exists for key.');
STATUS_TEXTS[Status.TOO_LARGE] = bytes('Too large.');
STATUS_TEXTS[Status.INVALID] = bytes('Invalid arguments');
STATUS_TEXTS[Status.NOT_STORED] = bytes('Not stored.');
STATUS_TEXTS[Status.NON_NUMERIC] = bytes('Non-numeric server-side value for incr or decr');
STATUS_TEXTS[Status.AUTH_ERROR] = bytes('Auth failure.');
STATUS_TEXTS[Status.UNKNOWN_COMMAND] = bytes('Unknown command');
STATUS_TEXTS[Status.NO_MEMORY] = bytes('Out of memory');
STATUS_TEXTS[Status.TEMPORARY_FAILURE] = bytes('Temporary failure');
STATUS_TEXTS[Status.NOT_SUPPORTED] = bytes('key holds a value that is not a string');
