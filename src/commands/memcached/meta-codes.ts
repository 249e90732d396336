/** Two-letter codes of meta replies, (first << 8) | second, and the letters of the M flag. */

export const enum MetaCode {
  /** Done. */
  HD = 0x4844,
  /** Not stored. */
  NS = 0x4e53,
  /** The item's version is another. */
  EX = 0x4558,
  /** Not found. */
  NF = 0x4e46,
  /** A miss of mg and me. */
  EN = 0x454e,
  /** Debug line. */
  ME = 0x4d45,
}

export const enum MetaMode {
  // ms
  ADD = 0x45,
  APPEND = 0x41,
  PREPEND = 0x50,
  REPLACE = 0x52,
  SET = 0x53,
  // ma
  INCREMENT = 0x49,
  PLUS = 0x2b,
  DECREMENT = 0x44,
  MINUS = 0x2d,
}
