/**
 * The main thread's users, loaded when there are any: the rules of users need the table of all commands, which a server that has the
 * default user alone never asks the main thread for. It starts 25 ms sooner without.
 *
 * Invariant: as long as nothing is loaded, every worker's users are those it begins with: the default user, who needs no password.
 */
import type { UserChange } from '../commands/acl/users.js';
import type { Settings } from '../config/index.js';
import type { Log } from './log.js';
import type { UserRegistry } from './user-registry.js';

const NOBODY: UserChange = { removed: [], set: [] };

export class UsersOnDemand {
  readonly #settings: Settings;
  readonly #log: Log;
  #loading: Promise<UserRegistry> | null = null;
  #registry: UserRegistry | null = null;

  private constructor(settings: Settings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  /** Throws ConfigError when the settings or the ACL file declare users that cannot be. */
  static async open(settings: Settings, log: Log): Promise<UsersOnDemand> {
    const users = new UsersOnDemand(settings, log);
    if (settings.user.length > 0 || settings.aclfile !== '' || settings.requirepass !== '') await users.load();
    return users;
  }

  /** Whoever asks first gets it first: changes keep their order. */
  load(): Promise<UserRegistry> {
    this.#loading ??= this.#make();
    return this.#loading;
  }

  async #make(): Promise<UserRegistry> {
    const { UserRegistry } = await import('./user-registry.js');
    this.#registry = new UserRegistry(this.#settings, this.#log);
    return this.#registry;
  }

  /** What a new worker begins with. */
  get everyone(): UserChange {
    return this.#registry?.everyone ?? NOBODY;
  }

  /** From what a worker began with to what is now. */
  changeSince(known: UserChange): UserChange {
    return this.#registry?.changeSince(known) ?? NOBODY;
  }

  /** See UserRegistry. */
  get declarations(): readonly string[] {
    return this.#registry?.declarations ?? [];
  }
}
