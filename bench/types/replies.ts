/**
 * Counting RESP2 replies in a stream of bytes, nested arrays as one: a load generator need not know what is in them.
 *
 * Invariant: the count does not depend on how the stream is cut. An error reply on the top level is kept: the first.
 */
const CARRIAGE_RETURN = 13;
const DOLLAR = 0x24;
const STAR = 0x2a;
const MINUS = 0x2d;

export class ReplyCounter {
  count = 0;
  firstError = '';
  /** Elements that are still to come, of each array that is open. */
  readonly #open: number[] = [];
  /** Bytes of a bulk string, its CR LF included, that are still to come. */
  #bulkLeft = 0;
  /** The line that has begun. */
  #line = '';
  #endsLine = false;

  feed(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#bulkLeft > 0) {
        const taken = Math.min(this.#bulkLeft, bytes.length - at);
        this.#bulkLeft -= taken;
        at += taken;
        if (this.#bulkLeft === 0) this.#endValue();
        continue;
      }
      if (this.#endsLine) {
        at++;
        this.#endsLine = false;
        this.#takeLine();
        continue;
      }
      const end = bytes.indexOf(CARRIAGE_RETURN, at);
      this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
      this.#endsLine = end >= 0;
      at = end < 0 ? bytes.length : end + 1;
    }
  }

  #takeLine(): void {
    const line = this.#line;
    this.#line = '';
    const kind = line.charCodeAt(0);
    const length = Number(line.slice(1));
    if (kind === DOLLAR && length >= 0) {
      this.#bulkLeft = length + 2;
    } else if (kind === STAR && length > 0) {
      this.#open.push(length);
    } else {
      if (kind === MINUS && this.#open.length === 0 && this.firstError === '') this.firstError = line;
      this.#endValue();
    }
  }

  #endValue(): void {
    const open = this.#open;
    while (open.length > 0) {
      if (--open[open.length - 1] > 0) return;
      open.pop();
    }
    this.count++;
  }
}
