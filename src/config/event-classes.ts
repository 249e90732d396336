/**
 * The kind of notify-keyspace-events: which keyspace events are sent, as letters and as bits.
 *
 * The bits are those of store/change-feed's Notify, one for each letter in this order; a test compares them. `A` stands for all classes
 * but key misses (m) and new keys (n). Invariant: as everywhere, parse(format(v)) equals v.
 */
import { type Kind, ValueError } from './kinds.js';

const LETTERS = 'KEg$lshzxetmdn';
/** The classes in the order in which Redis prints them when they are not all set, then the rest. */
const CLASSES = 'g$lshzxetd';
const PRINTED = `${CLASSES}n`;

function bit(letter: string): number {
  return 1 << LETTERS.indexOf(letter);
}

const ALL = [...CLASSES].reduce((bits, letter) => bits | bit(letter), 0);

export function eventClasses(): Kind<number> {
  const format = (bits: number): string => {
    const has = (letter: string): boolean => (bits & bit(letter)) !== 0;
    const hasAll = (bits & ALL) === ALL;
    // Redis leaves n out behind A; it would not read back the same.
    const classes = hasAll ? `A${has('n') ? 'n' : ''}` : [...PRINTED].filter(has).join('');
    return classes + [...'KEm'].filter(has).join('');
  };
  return {
    placeholder: 'CLASSES',
    range: '',
    parse(text) {
      let bits = 0;
      for (const letter of text) {
        if (letter === 'A') bits |= ALL;
        else if (LETTERS.includes(letter)) bits |= bit(letter);
        else throw new ValueError("is not made of event classes: Use 'Ag$lshzxeKEtmdn'.");
      }
      return bits;
    },
    format,
    show: format,
  };
}
