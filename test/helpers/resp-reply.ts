/**
 * Finding the end of one RESP reply (versions 2 and 3) in received bytes, for tests that compare raw replies.
 */

const CRLF = '\r\n';
const LENGTH_PREFIXED = '$=!';
const AGGREGATES: Readonly<Record<string, number>> = { '*': 1, '~': 1, '>': 1, '%': 2, '|': 2 };

/** Offset behind the reply that starts at `offset` of a latin1 text, or -1 while it is incomplete. */
export function replyEnd(text: string, offset: number): number {
  const lineEnd = text.indexOf(CRLF, offset);
  if (lineEnd < 0) return -1;
  const type = text[offset];
  const count = Number(text.slice(offset + 1, lineEnd));
  let end = lineEnd + 2;
  if (LENGTH_PREFIXED.includes(type)) {
    if (count >= 0) end += count + 2;
    return end <= text.length ? end : -1;
  }
  const perElement = AGGREGATES[type];
  if (perElement === undefined) return end;
  // An attribute comes before the reply that it belongs to.
  const elements = count * perElement + (type === '|' ? 1 : 0);
  for (let i = 0; i < elements; i++) {
    end = replyEnd(text, end);
    if (end < 0) return -1;
  }
  return end;
}

/** A reply as a JavaScript value: arrays and sets as arrays, maps as arrays of pairs, errors as '-text', nulls as null. */
export function parseReply(text: string): unknown {
  return parseAt(text, { offset: 0 });
}

function parseAt(text: string, at: { offset: number }): unknown {
  const lineEnd = text.indexOf(CRLF, at.offset);
  const type = text[at.offset];
  const line = text.slice(at.offset + 1, lineEnd);
  at.offset = lineEnd + 2;
  if (LENGTH_PREFIXED.includes(type)) {
    const length = Number(line);
    if (length < 0) return null;
    const value = text.slice(at.offset, at.offset + length);
    at.offset += length + 2;
    return value;
  }
  if (type === '_') return null;
  if (type === ':') return Number(line);
  if (type === '-') return `-${line}`;
  const perElement = AGGREGATES[type];
  if (perElement === undefined) return line;
  if (line === '-1') return null;
  const elements: unknown[] = [];
  for (let i = 0; i < Number(line); i++) {
    elements.push(perElement === 1 ? parseAt(text, at) : [parseAt(text, at), parseAt(text, at)]);
  }
  return elements;
}
