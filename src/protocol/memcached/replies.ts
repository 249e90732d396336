/**
 * Every fixed reply line of the memcached protocol, as bytes with CR LF, made once at load. One table, so that wording
 * is checked in one place against what clients parse.
 */

function line(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\r\n`);
}

export const Replies = {
  OK: line('OK'),
  END: line('END'),
  ERROR: line('ERROR'),
  RESET: line('RESET'),
  // Classic outcomes.
  STORED: line('STORED'),
  NOT_STORED: line('NOT_STORED'),
  EXISTS: line('EXISTS'),
  NOT_FOUND: line('NOT_FOUND'),
  DELETED: line('DELETED'),
  TOUCHED: line('TOUCHED'),
  // Meta.
  META_NOOP: line('MN'),
  META_MISS: line('EN'),
  LOG_REFUSED: line('SERVER_ERROR the effect log cannot be written'),
  // The client's errors.
  BAD_FORMAT: line('CLIENT_ERROR bad command line format'),
  BAD_DELETE: line('CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]'),
  BAD_CHUNK: line('CLIENT_ERROR bad data chunk'),
  BAD_EXPTIME: line('CLIENT_ERROR invalid exptime argument'),
  BAD_DELTA: line('CLIENT_ERROR invalid numeric delta argument'),
  NON_NUMERIC: line('CLIENT_ERROR cannot increment or decrement non-numeric value'),
  LINE_TOO_LONG: line('CLIENT_ERROR line too long'),
  // The client's errors in meta commands.
  DUPLICATE_FLAG: line('CLIENT_ERROR duplicate flag'),
  INVALID_FLAG: line('CLIENT_ERROR invalid flag'),
  INVALID_OR_DUPLICATE_FLAG: line('CLIENT_ERROR invalid or duplicate flag'),
  TOO_MANY_FLAGS: line('CLIENT_ERROR options flags are too long'),
  BAD_KEY_ENCODING: line('CLIENT_ERROR error decoding key'),
  BAD_TOKEN: line('CLIENT_ERROR bad token in command line format'),
  OPAQUE_TOO_LONG: line('CLIENT_ERROR opaque token too long'),
  BAD_MODE_LENGTH: line('CLIENT_ERROR incorrect length for M token'),
  BAD_SET_MODE: line('CLIENT_ERROR invalid mode for ms M token'),
  BAD_ARITHMETIC_MODE: line('CLIENT_ERROR invalid mode for ma M token'),
  BAD_INITIAL: line('CLIENT_ERROR invalid numeric initial value'),
  BAD_FLAG_DELTA: line('CLIENT_ERROR invalid numeric delta value'),
  // Authentication.
  UNAUTHENTICATED: line('CLIENT_ERROR unauthenticated'),
  AUTH_TOO_LONG: line('CLIENT_ERROR auth token too long'),
  AUTH_FORMAT: line('CLIENT_ERROR bad authentication token format'),
  AUTH_TERMINATION: line('CLIENT_ERROR bad command line termination'),
  AUTH_FAILED: line('CLIENT_ERROR authentication failure'),
  // Administration.
  BAD_SHUTDOWN_MODE: line('CLIENT_ERROR invalid shutdown mode'),
  WATCH_OFF: line('CLIENT_ERROR watch commands not allowed'),
  WATCH_PIPELINED: line('ERROR cannot pipeline other commands before watch'),
  WATCHERS_FULL: line('WATCHER_TOO_MANY log watcher limit reached'),
  DUMP_PIPELINED: line('ERROR cannot pipeline other commands before metadump'),
  METADUMP_OFF: line('ERROR metadump not allowed'),
  CRAWLER_OFF: line('CLIENT_ERROR lru crawler disabled'),
  CRAWLER_SLEEP: line('CLIENT_ERROR sleep must be one second or less'),
  BAD_CLASS: line('BADCLASS invalid class id'),
  BAD_CLASSES: line('BADCLASS invalid src or dst class id'),
  SAME_CLASS: line('SAME src and dst class are identical'),
  NO_SPARE_PAGE: line('NOSPARE source class has no spare pages'),
  SEGMENTS_TOO_LARGE: line('ERROR hot and warm pcts must not exceed 80'),
  FACTORS_TOO_SMALL: line('ERROR hot/warm age factors must be greater than 0'),
  MEMORY_TOO_SMALL: line('MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m'),
  MEMORY_IN_MEGABYTES: line('MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes'),
  MEMORY_NOT_ADJUSTED: line('MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust'),
  BAD_DETAIL: line('CLIENT_ERROR usage: stats detail on|off|dump'),
  BAD_LINE: line('CLIENT_ERROR bad command line'),
  BAD_SLAB: line('CLIENT_ERROR Illegal slab id'),
  FLUSH_OFF: line('CLIENT_ERROR flush_all not allowed'),
  SHUTDOWN_OFF: line('ERROR: shutdown not enabled'),
  DUMP_OFF: line('CLIENT_ERROR stats cachedump not allowed'),
  // The server's errors.
  TOO_LARGE: line('SERVER_ERROR object too large for cache'),
  NO_MEMORY_STORING: line('SERVER_ERROR out of memory storing object'),
  NO_MEMORY: line('SERVER_ERROR out of memory'),
  WRONG_TYPE: line('SERVER_ERROR key holds a value that is not a string'),
  MULTI_DATAGRAM: line('SERVER_ERROR multi-packet request not supported'),
  NEEDS_CONNECTION: line('SERVER_ERROR not available over UDP'),
  REPLY_TOO_LARGE: line('SERVER_ERROR reply too large for UDP'),
} as const;
