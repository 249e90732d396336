/**
 * The main thread's users: where they come from (settings, the ACL file), what changes them, where they are saved.
 *
 * Invariant: what changes here is handed to every worker (the caller broadcasts each UserChange) before anyone is told that it
 * is done.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { type UserChange, Users } from '../commands/acl/users.js';
import { createCommandTable } from '../commands/families.js';
import { ConfigError, type Settings } from '../config/index.js';
import type { Log } from './log.js';

const NO_FILE =
  'ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.';
const NOT_SAVED = 'ERR There was an error trying to save the ACLs. Please check the server logs for more information';

export class UserRegistry {
  readonly #users = new Users(createCommandTable());
  readonly #settings: Settings;
  readonly #log: Log;

  /** Throws ConfigError when the settings or the file declare users that cannot be. */
  constructor(settings: Settings, log: Log) {
    this.#settings = settings;
    this.#log = log;
    this.#users.setDefaultPassword(settings.requirepass);
    const problem = this.#declare();
    if (problem !== null) throw new ConfigError([problem]);
  }

  /** What a new worker begins with. */
  get everyone(): UserChange {
    return { removed: [], set: this.#users.all().map((user) => [user.name, user.describe()] as const) };
  }

  /** From what a worker began with to what is now. */
  changeSince(known: UserChange): UserChange {
    const { set } = this.everyone;
    const names = new Set(set.map(([name]) => name));
    return { removed: known.set.map(([name]) => name).filter((name) => !names.has(name)), set };
  }

  setUser(name: string, rules: readonly string[]): UserChange | string {
    const change = this.#users.setUser(name, rules, this.#givesAllChannels);
    return typeof change === 'string' ? `ERR ${change}` : change;
  }

  removeUsers(names: readonly string[]): UserChange {
    return this.#users.removeUsers(names);
  }

  setDefaultPassword(password: string): UserChange {
    return this.#users.setDefaultPassword(password);
  }

  load(): UserChange | string {
    if (this.#settings.aclfile === '') return NO_FILE;
    const change = this.#loadFile();
    return typeof change === 'string' ? `ERR ${change}` : change;
  }

  /** Replaces the file at once (by rename); the error, or null. */
  save(): string | null {
    if (this.#settings.aclfile === '') return NO_FILE;
    const text = this.#users.lines().map((line) => `user ${line}\n`);
    const temporary = `${this.#path}.${process.pid}.tmp`;
    try {
      const fd = openSync(temporary, 'w', 0o600);
      try {
        writeFileSync(fd, text.join(''), 'latin1');
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, this.#path);
      return null;
    } catch (error) {
      rmSync(temporary, { force: true });
      this.#log('warning', `ACL SAVE to ${this.#path} failed: ${reasonOf(error)}`);
      return NOT_SAVED;
    }
  }

  /** The setting `user` for CONFIG REWRITE: nothing while users live in a file, or while the default user is all there is. */
  get declarations(): readonly string[] {
    if (this.#settings.aclfile !== '') return [];
    const lines = this.#users.lines().map((line) => Buffer.from(line, 'latin1').toString('utf8'));
    return lines.length === 1 && this.#settings.user.length === 0 ? [] : lines;
  }

  #declare(): string | null {
    const { user, aclfile } = this.#settings;
    if (user.length > 0 && aclfile !== '') {
      return 'users can come from the setting user or from --aclfile, not from both: a change to one would hide in the other.';
    }
    const problem = this.#users.declare(user, this.#givesAllChannels);
    if (problem !== null) return `--user: ${problem}`;
    if (aclfile === '') return null;
    const change = this.#loadFile();
    return typeof change === 'string' ? `--aclfile: ${change}` : null;
  }

  #loadFile(): UserChange | string {
    let text: string;
    try {
      text = readFileSync(this.#path, 'latin1');
    } catch (error) {
      return `Error loading ACLs, opening file '${this.#settings.aclfile}': ${reasonOf(error)}`;
    }
    return this.#users.loadFile(text, this.#settings.aclfile, this.#givesAllChannels);
  }

  get #path(): string {
    const { aclfile, pool } = this.#settings;
    return isAbsolute(aclfile) ? aclfile : join(pool, aclfile);
  }

  get #givesAllChannels(): boolean {
    return this.#settings.aclPubsubDefault === 'allchannels';
  }
}

function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'No such file or directory';
  return error instanceof Error ? error.message : String(error);
}
