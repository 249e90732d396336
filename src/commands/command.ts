/**
 * A compiled command: the spec plus what dispatch needs at hand, in one hidden class.
 *
 * Invariant: `index` is dense over all commands and subcommands of one table, fixed at start, and below COMMANDS_MAX, so
 * that statistics are plain array rows.
 */
import type { Context } from './context.js';
import { Category, type CommandSpec, Flag, type KeySpec, KeyUse } from './spec.js';

/** How the executor finds a command's keys. */
export const enum KeyMode {
  NONE = 0,
  /** Exactly one, argument `firstKey`. */
  ONE = 1,
  /** firstKey, firstKey + keyStep ... up to lastKey (negative: from the end). */
  RANGE = 2,
  /** Several specs, a count among the arguments, a keyword, or findKeys. */
  SEARCH = 3,
}

export class Command {
  readonly spec: CommandSpec;
  readonly index: number;
  /** 'get', 'config|get' */
  readonly fullName: string;
  readonly parent: Command | null;
  readonly arity: number;
  readonly flags: number;
  readonly categories: number;
  readonly exclusive: boolean;
  readonly timed: boolean;
  readonly repeatable: NonNullable<CommandSpec['repeatable']> | false;
  readonly largeArgument: number;
  readonly stage: ((context: Context) => boolean) | null;
  readonly run: ((context: Context) => void) | null;
  readonly extraLocks: ((context: Context) => void) | null;
  readonly findKeys: CommandSpec['findKeys'] | null;
  readonly runsAlone: ((context: Context) => boolean) | null;

  readonly keyMode: KeyMode;
  readonly firstKey: number;
  readonly lastKey: number;
  readonly keyStep: number;
  readonly keys: readonly KeySpec[];

  readonly container: boolean;
  /** Subcommands in the order of declaration; looked up through the table. */
  readonly subcommands: Command[] = [];

  constructor(spec: CommandSpec, index: number, parent: Command | null) {
    this.spec = spec;
    this.index = index;
    this.parent = parent;
    this.fullName = parent === null ? spec.name : `${parent.spec.name}|${spec.name}`;
    this.arity = spec.arity;
    this.keys = spec.keys ?? [];
    const movable = spec.findKeys !== undefined || this.keys.some((key) => !('last' in key.find));
    this.flags = spec.flags | (movable ? Flag.MOVABLE_KEYS : 0);
    this.categories = spec.categories | impliedCategories(this.flags, spec.categories);
    this.exclusive = spec.exclusive === true;
    this.timed = spec.timed !== false && (this.flags & Flag.FAST) === 0;
    this.repeatable = spec.repeatable ?? false;
    this.largeArgument = spec.largeArgument ?? 0;
    this.stage = spec.stage ?? null;
    this.run = spec.run ?? null;
    this.extraLocks = spec.extraLocks ?? null;
    this.findKeys = spec.findKeys ?? null;
    this.runsAlone = spec.runsAlone ?? null;
    this.container = spec.subcommands !== undefined;

    let keyMode = KeyMode.NONE;
    let firstKey = 0;
    let lastKey = 0;
    let keyStep = 0;
    const only = this.keys[0];
    if (spec.findKeys !== undefined || spec.extraLocks !== undefined || this.keys.length > 1) {
      keyMode = KeyMode.SEARCH;
    } else if (only !== undefined && (only.use & KeyUse.NOT_KEY) === 0) {
      if ('index' in only.begin && 'last' in only.find && only.find.limit === 0) {
        firstKey = only.begin.index;
        lastKey = only.find.last < 0 ? only.find.last : firstKey + only.find.last;
        keyStep = only.find.step;
        keyMode = lastKey === firstKey ? KeyMode.ONE : KeyMode.RANGE;
      } else {
        keyMode = KeyMode.SEARCH;
      }
    }
    this.keyMode = keyMode;
    this.firstKey = firstKey;
    this.lastKey = lastKey;
    this.keyStep = keyStep;
  }

  /** The flags with regard to what the bound request says: a script may promise not to write. */
  flagsOf(context: Context): number {
    const { mayReplicate } = this.spec;
    return mayReplicate === undefined || mayReplicate(context) ? this.flags : this.flags & ~Flag.MAY_REPLICATE;
  }

  /** It may run while a long script keeps its worker out of the store. */
  get runsWithoutStore(): boolean {
    return this.has(Flag.ALLOW_BUSY) && this.keyMode === KeyMode.NONE && !this.exclusive;
  }

  has(flag: Flag): boolean {
    return (this.flags & flag) !== 0;
  }

  /** False when a request of `argc` words cannot be this command. */
  accepts(argc: number): boolean {
    return this.arity > 0 ? argc === this.arity : argc >= -this.arity;
  }
}

/** The categories that follow from flags, by Redis's rules. */
function impliedCategories(flags: number, own: number): number {
  let categories = 0;
  if ((flags & Flag.WRITE) !== 0) categories |= Category.WRITE;
  if ((flags & Flag.READONLY) !== 0 && (own & Category.SCRIPTING) === 0) categories |= Category.READ;
  if ((flags & Flag.ADMIN) !== 0) categories |= Category.ADMIN | Category.DANGEROUS;
  if ((flags & Flag.PUBSUB) !== 0) categories |= Category.PUBSUB;
  if ((flags & Flag.BLOCKING) !== 0) categories |= Category.BLOCKING;
  categories |= (flags & Flag.FAST) !== 0 ? Category.FAST : Category.SLOW;
  return categories;
}
