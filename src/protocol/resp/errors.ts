/**
 * Protocol errors: what the RESP parser refuses, in the words clients know. Each one is answered and closes the connection.
 */

export const enum ProtocolError {
  NONE = 0,
  MULTIBULK_COUNT_TOO_LONG = 1,
  MULTIBULK_LENGTH = 2,
  MULTIBULK_UNAUTHENTICATED = 3,
  BULK_COUNT_TOO_LONG = 4,
  BULK_EXPECTED = 5,
  BULK_LENGTH = 6,
  BULK_UNAUTHENTICATED = 7,
  INLINE_TOO_BIG = 8,
  INLINE_QUOTES = 9,
}

const TEXTS: Record<ProtocolError, string> = {
  [ProtocolError.NONE]: '',
  [ProtocolError.MULTIBULK_COUNT_TOO_LONG]: 'too big mbulk count string',
  [ProtocolError.MULTIBULK_LENGTH]: 'invalid multibulk length',
  [ProtocolError.MULTIBULK_UNAUTHENTICATED]: 'unauthenticated multibulk length',
  [ProtocolError.BULK_COUNT_TOO_LONG]: 'too big bulk count string',
  [ProtocolError.BULK_EXPECTED]: "expected '$', got ",
  [ProtocolError.BULK_LENGTH]: 'invalid bulk length',
  [ProtocolError.BULK_UNAUTHENTICATED]: 'unauthenticated bulk length',
  [ProtocolError.INLINE_TOO_BIG]: 'too big inline request',
  [ProtocolError.INLINE_QUOTES]: 'unbalanced quotes in request',
};

/** The error reply's text (byte string, without '-' and CRLF). `byte` is the offending one where the text names it. */
export function protocolErrorText(error: ProtocolError, byte: number): string {
  const detail = error === ProtocolError.BULK_EXPECTED ? `'${String.fromCharCode(byte)}'` : '';
  return `ERR Protocol error: ${TEXTS[error]}${detail}`;
}
