/**
 * One user: passwords (as SHA-256 in hex), flags, and the selectors that say what it may do.
 *
 * Invariant: `describe()` gives rules that, applied to a new user, make an equal one; users cross threads in that form.
 */
import { crypto } from '../../native/crypto.js';
import type { CommandTable } from '../table.js';
import { RuleError, Selector } from './selector.js';

export class User {
  readonly name: string;
  isEnabled = false;
  /** Any password will do, and new connections need none if this is the default user. */
  needsNoPassword = false;
  sanitizesPayload = true;
  passwords: string[] = [];
  /** The root first. */
  selectors: Selector[];

  private readonly table: CommandTable;
  private readonly allChannels: boolean;

  /** `allChannels`: what the setting acl-pubsub-default gives to new users. */
  constructor(name: string, table: CommandTable, allChannels: boolean) {
    this.name = name;
    this.table = table;
    this.allChannels = allChannels;
    this.selectors = [new Selector(table, allChannels)];
  }

  /** Nothing is ever refused to this user. */
  get isUnrestricted(): boolean {
    return this.selectors.some((selector) => selector.isUnrestricted);
  }

  /** Applies one rule; returns why it was refused, or null. */
  apply(rule: string): string | null {
    if (rule === '') return null;
    switch (rule.toLowerCase()) {
      case 'on':
        this.isEnabled = true;
        return null;
      case 'off':
        this.isEnabled = false;
        return null;
      case 'sanitize-payload':
        this.sanitizesPayload = true;
        return null;
      case 'skip-sanitize-payload':
        this.sanitizesPayload = false;
        return null;
      case 'nopass':
        this.needsNoPassword = true;
        this.passwords = [];
        return null;
      case 'resetpass':
        this.needsNoPassword = false;
        this.passwords = [];
        return null;
      case 'clearselectors':
        this.selectors.length = 1;
        return null;
      case 'reset':
        this.reset();
        return null;
    }
    const value = rule.slice(1);
    switch (rule[0]) {
      case '>':
        return this.addPassword(hashOf(value));
      case '#':
        return isHash(value) ? this.addPassword(value) : RuleError.BAD_HASH;
      case '<':
        return this.removePassword(hashOf(value));
      case '!':
        return isHash(value) ? this.removePassword(value) : RuleError.BAD_HASH;
    }
    if (rule[0] === '(' && rule.endsWith(')')) return this.addSelector(rule.slice(1, -1));
    return this.selectors[0].apply(rule);
  }

  /** Takes the same time whatever the passwords share. */
  accepts(password: Uint8Array): boolean {
    if (this.needsNoPassword) return true;
    const given = crypto().createHash('sha256').update(password).digest();
    let isRight = false;
    for (const hash of this.passwords) if (crypto().timingSafeEqual(given, Buffer.from(hash, 'hex'))) isRight = true;
    return isRight;
  }

  /** All of it as rules. */
  describe(): string {
    const [root, ...others] = this.selectors;
    return [
      ...this.flags,
      ...this.passwords.map((hash) => `#${hash}`),
      root.describe(),
      ...others.map((selector) => `(${selector.describe()})`),
    ].join(' ');
  }

  get flags(): string[] {
    return [
      this.isEnabled ? 'on' : 'off',
      ...(this.needsNoPassword ? ['nopass'] : []),
      this.sanitizesPayload ? 'sanitize-payload' : 'skip-sanitize-payload',
    ];
  }

  private reset(): void {
    this.isEnabled = false;
    this.needsNoPassword = false;
    this.sanitizesPayload = true;
    this.passwords = [];
    this.selectors = [new Selector(this.table, this.allChannels)];
  }

  private addPassword(hash: string): null {
    if (!this.passwords.includes(hash)) this.passwords.push(hash);
    this.needsNoPassword = false;
    return null;
  }

  private removePassword(hash: string): string | null {
    const index = this.passwords.indexOf(hash);
    if (index < 0) return RuleError.NO_SUCH_PASSWORD;
    this.passwords.splice(index, 1);
    return null;
  }

  private addSelector(rules: string): string | null {
    const selector = new Selector(this.table, this.allChannels);
    for (const rule of wordsOf(rules)) {
      const error = selector.apply(rule);
      if (error !== null) return error;
    }
    this.selectors.push(selector);
    return null;
  }
}

/** The words of a line of rules. */
export function wordsOf(line: string): string[] {
  return line.split(/[ \t\r\n]+/).filter((word) => word !== '');
}

/** Puts selectors that were given as several words together again; `error` names the one that has no end. */
export function joinSelectors(words: readonly string[]): { readonly rules: string[]; readonly error: string | null } {
  const rules: string[] = [];
  let open: string | null = null;
  let start = '';
  for (const word of words) {
    if (open !== null) {
      open = `${open} ${word}`;
      if (word.endsWith(')')) {
        rules.push(open);
        open = null;
      }
    } else if (word.startsWith('(') && !word.endsWith(')')) {
      open = word;
      start = word;
    } else {
      rules.push(word);
    }
  }
  return { rules, error: open === null ? null : `Unmatched parenthesis in acl selector starting at '${start}'.` };
}

/** `text` is a byte string. */
function hashOf(text: string): string {
  return crypto().createHash('sha256').update(Buffer.from(text, 'latin1')).digest('hex');
}

function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
