/**
 * The users of a server. The main thread keeps the ones that count; each worker has a copy, which changes follow.
 *
 * Changes are plain data (users as lines of rules), so they cross threads. Invariant: `epoch` grows with every change of
 * any user's rights; a client whose `unrestrictedAt` equals it may do everything, and its commands are not checked.
 */
import type { CommandTable } from '../table.js';
import { hasSpaces, RuleError } from './selector.js';
import { joinSelectors, User, wordsOf } from './user.js';

export const DEFAULT_USER = 'default';

/** First these users go, with their connections, then those are made or changed. Names and rules are byte strings. */
export interface UserChange {
  readonly removed: readonly string[];
  readonly set: readonly (readonly [name: string, rules: string])[];
}

export class Users {
  epoch = 1;
  default: User;

  private readonly table: CommandTable;
  private users = new Map<string, User>();

  constructor(table: CommandTable) {
    this.table = table;
    this.default = this.newDefault();
    this.users.set(DEFAULT_USER, this.default);
  }

  get(name: string): User | undefined {
    return this.users.get(name);
  }

  /** By name. */
  all(): User[] {
    return [...this.users.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** 'NAME rules', by name: without the word `user` that stands before it in files. */
  lines(): string[] {
    return this.all().map((user) => `${user.name} ${user.describe()}`);
  }

  /** True when a connection that has not authenticated may do nothing. */
  get needAuthentication(): boolean {
    return !this.default.needsNoPassword || !this.default.isEnabled;
  }

  // ---- changing: what the main thread decides

  /** ACL SETUSER: all rules or none. The error is a reply without its code. */
  setUser(name: string, words: readonly string[], allChannels: boolean): UserChange | string {
    if (hasSpaces(name)) return "Usernames can't contain spaces or null characters";
    const { rules, error } = joinSelectors(words);
    if (error !== null) return error;
    const old = this.users.get(name);
    const user = new User(name, this.table, allChannels);
    if (old !== undefined) applyAll(user, old.describe());
    for (const rule of rules) {
      const reason = user.apply(rule);
      if (reason !== null) return `Error in ACL SETUSER modifier '${rule}': ${reason}`;
    }
    return this.applied({ removed: [], set: [[name, user.describe()]] });
  }

  removeUsers(names: readonly string[]): UserChange {
    return this.applied({ removed: [...new Set(names)].filter((name) => this.users.has(name)), set: [] });
  }

  /** The setting requirepass. */
  setDefaultPassword(password: string): UserChange {
    const rules = password === '' ? ['nopass'] : ['resetpass', `>${Buffer.from(password).toString('latin1')}`];
    const change = this.setUser(DEFAULT_USER, rules, false);
    if (typeof change === 'string') throw new Error(change);
    return change;
  }

  /**
   * All users from the text of an ACL file; every connection of a user other than the default one ends. A string says
   * what is wrong, and nothing has changed then.
   */
  loadFile(text: string, path: string, allChannels: boolean): UserChange | string {
    const loaded = new Map<string, User>();
    let errors = '';
    text.split('\n').forEach((line, index) => {
      const words = wordsOf(line);
      if (words.length > 0) errors += this.loadLine(words, `${path}:${index + 1}`, loaded, allChannels);
    });
    if (errors !== '') {
      return `${errors}WARNING: ACL errors detected, no change to the previously active ACL rules was performed`;
    }
    if (!loaded.has(DEFAULT_USER)) loaded.set(DEFAULT_USER, this.newDefault());
    return this.applied({
      removed: [...this.users.keys()].filter((name) => name !== DEFAULT_USER),
      set: [...loaded.values()].map((user) => [user.name, user.describe()] as const),
    });
  }

  /** Users declared in the configuration, each 'NAME rules'. Returns what is wrong with the first bad one, or null. */
  declare(lines: readonly string[], allChannels: boolean): string | null {
    const seen = new Set<string>();
    for (const line of lines) {
      const [name, ...words] = wordsOf(Buffer.from(line).toString('latin1'));
      if (name === undefined) return 'a user needs a name';
      if (seen.has(name)) return `Duplicate user found. A user can only be defined once in config files: '${name}'`;
      seen.add(name);
      const change = this.setUser(name, name === DEFAULT_USER ? ['reset', ...words] : words, allChannels);
      if (typeof change === 'string') return `user '${name}': ${change}`;
    }
    return null;
  }

  // ---- changing: what the workers follow

  applied(change: UserChange): UserChange {
    for (const name of change.removed) this.users.delete(name);
    for (const [name, rules] of change.set) {
      const user = new User(name, this.table, false);
      applyAll(user, rules);
      const old = this.users.get(name);
      // Clients hold their user, so it stays the same object.
      if (old === undefined) this.users.set(name, user);
      else Object.assign(old, user);
    }
    this.epoch++;
    return change;
  }

  private newDefault(): User {
    const user = new User(DEFAULT_USER, this.table, false);
    applyAll(user, 'on nopass ~* &* +@all');
    return user;
  }

  private loadLine(words: readonly string[], where: string, loaded: Map<string, User>, allChannels: boolean): string {
    const [keyword, name, ...rest] = words;
    if (keyword !== 'user' || name === undefined) {
      return `${where} should start with user keyword followed by the username. `;
    }
    if (hasSpaces(name)) return `'${where}: username '${name}' contains invalid characters. `;
    if (loaded.has(name))
      return `WARNING: Duplicate user '${name}' found on line ${where.slice(where.lastIndexOf(':') + 1)}. `;
    const user = new User(name, this.table, allChannels);
    loaded.set(name, user);
    const { rules, error } = joinSelectors(rest);
    if (error !== null) return `${where}: Unmatched parenthesis in selector definition.`;
    let errors = '';
    let hasOther = false;
    for (const rule of rules) {
      const reason = user.apply(rule);
      // A wrong name tells nothing secret; of the rest the first is shown, without what was written there.
      if (reason === RuleError.UNKNOWN) errors += `${where}: Error in applying operation '${rule}': ${reason}. `;
      else if (reason !== null && !hasOther) {
        errors += `${where}: ${reason}. `;
        hasOther = true;
      }
    }
    return errors;
  }
}

/** Rules that a user itself gave, or fixed ones. */
function applyAll(user: User, rules: string): void {
  for (const rule of joinSelectors(wordsOf(rules)).rules) {
    const reason = user.apply(rule);
    if (reason !== null) throw new Error(`'${rule}' of a known user was refused: ${reason}`);
  }
}
