/**
 * Storing a value: what set, add, replace, append, prepend, cas and ms have in common.
 *
 * The value is staged and filled before the key's lock is taken; under the lock stand only the look-up, the decision and
 * the commit. append and prepend alone must build their value under the lock, from what they find there.
 */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter } from '../../layout/counters.js';
import { Encoding, ItemType, itemBytes } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { DB, type MemcachedContext } from './context.js';
import { STORE_COMMAND_NAMES, STORE_STATUS_NAMES, WatchKind } from './watch.js';

export const enum StoreMode {
  INVALID = -1,
  SET = 0,
  ADD = 1,
  REPLACE = 2,
  CAS = 3,
  // From here on the new value contains the old one.
  APPEND = 4,
  PREPEND = 5,
}

export const enum StoreResult {
  STORED = 0,
  NOT_STORED = 1,
  EXISTS = 2,
  NOT_FOUND = 3,
  TOO_LARGE = 4,
  NO_MEMORY = 5,
  WRONG_TYPE = 6,
}

/** One storage request; one object, reused. */
export class StoreRequest {
  mode: StoreMode = StoreMode.SET;
  /** The value lies there in the context's input, unless it has been received into a staged item. */
  valueOffset = 0;
  /** Size of the value as sent; after storing, of the item's. */
  valueBytes = 0;
  clientFlags = 0;
  expiryMs = 0;
  /** Version that the stored item must have; 0 = whatever. */
  compareCas = 0;
  /** Version that the new item gets; 0 = the next. */
  newCas = 0;
  /** A lower compareCas stores too, but marks the item stale. */
  allowsStale = false;
  /** append and prepend store on a miss, with this expiry. */
  vivifies = false;
  /** Asks for `version` after storing. */
  wantsVersion = false;

  /** Result: the new item's version, if wanted. */
  version = 0;

  reset(mode: StoreMode, valueOffset: number, valueBytes: number): void {
    this.mode = mode;
    this.valueOffset = valueOffset;
    this.valueBytes = valueBytes;
    this.clientFlags = 0;
    this.expiryMs = 0;
    this.compareCas = 0;
    this.newCas = 0;
    this.allowsStale = false;
    this.vivifies = false;
    this.wantsVersion = false;
    this.version = 0;
  }
}

export function isAppending(mode: StoreMode): boolean {
  return mode >= StoreMode.APPEND;
}

/** What memcached's item-size-max counts beside key and value: header, key's end, version, CR LF; and flags that are not 0. */
const ITEM_OVERHEAD_BYTES = 59;
const FLAGS_BYTES = 4;

/** True when a value of so many bytes may be stored under a key of so many. */
export function fitsItemSize(
  context: MemcachedContext,
  keyBytes: number,
  valueBytes: number,
  clientFlags: number,
): boolean {
  const overhead = clientFlags === 0 ? ITEM_OVERHEAD_BYTES : ITEM_OVERHEAD_BYTES + FLAGS_BYTES;
  return keyBytes + valueBytes + overhead <= context.settings.itemSizeMax;
}

/** Stores the value of the current request under the current key. */
export function store(context: MemcachedContext, request: StoreRequest): StoreResult {
  const { keyspace } = context;
  context.counters[Counter.cmdSet]++;
  if (context.prefixes.isOn) context.prefixes.set();
  const h = context.hashKey();
  if (context.isValueStaged) {
    const large = context.client.large!;
    keyspace.unparkStaged(large.slot, DB);
    large.isParked = false;
  } else if (!isAppending(request.mode) && !keyspace.prefersOverwrite(context.keyLength, request.valueBytes)) {
    if (!stageValue(context, request, h)) return giveUp(context, h, request.mode);
  }
  context.lock(h);
  let result: StoreResult;
  if (!context.lookUp(h)) result = storeNew(context, request, h);
  else if (keyspace.type !== ItemType.STRING) result = StoreResult.WRONG_TYPE;
  else result = storeOver(context, request, h);
  if (result === StoreResult.STORED) {
    context.countInClass(ClassCounter.sets);
    // A commit leaves the cursor on the new item, which is in a page that can be changed.
    if (request.newCas > 0) keyspace.setVersion(request.newCas);
    if (request.wantsVersion) request.version = context.version;
  } else {
    keyspace.countForSize(itemBytes(context.keyLength, request.valueBytes), ClassCounter.sets);
  }
  if (context.watch.isWatched(WatchKind.MUTATIONS)) tellWatchers(context, request, result);
  context.unlock(h);
  if (keyspace.hasStaged) keyspace.dropStaged();
  return result;
}

function tellWatchers(context: MemcachedContext, request: StoreRequest, result: StoreResult): void {
  const slabClass = result === StoreResult.STORED ? context.keyspace.slabClass : 0;
  const status = STORE_STATUS_NAMES[result];
  const command = STORE_COMMAND_NAMES[request.mode];
  context.watch.store(status, command, request.expiryMs, request.valueBytes, slabClass);
}

/** Stages an item for the current key and copies the request's value into it. */
function stageValue(context: MemcachedContext, request: StoreRequest, h: number): boolean {
  const { keyspace } = context;
  if (!context.stageKey(h, request.valueBytes)) return false;
  copyBytes(keyspace.staged, keyspace.stagedOffset, context.input, request.valueOffset, request.valueBytes);
  return true;
}

/** Out of memory. A set that fails must not leave the old value behind: the client believes it replaced. */
function giveUp(context: MemcachedContext, h: number, mode: StoreMode): StoreResult {
  context.counters[Counter.storeNoMemory]++;
  if (mode === StoreMode.SET) dropOld(context, h);
  return StoreResult.NO_MEMORY;
}

/** Removes the string under the current key, if there is one. */
export function dropOld(context: MemcachedContext, h: number): void {
  const { keyspace } = context;
  context.lock(h);
  if (keyspace.isRebuilding) keyspace.noteWritten(h);
  if (context.findKey(h) && keyspace.type === ItemType.STRING) keyspace.remove();
  context.unlock(h);
}

function storeNew(context: MemcachedContext, request: StoreRequest, h: number): StoreResult {
  const { counters } = context;
  switch (request.mode) {
    case StoreMode.CAS:
      counters[Counter.casMisses]++;
      return StoreResult.NOT_FOUND;
    case StoreMode.REPLACE:
      return StoreResult.NOT_STORED;
    case StoreMode.APPEND:
    case StoreMode.PREPEND:
      if (!request.vivifies) return StoreResult.NOT_STORED;
  }
  return commit(context, request, h, 0, request.clientFlags, request.expiryMs);
}

/** The cursor is on the string that the key holds. */
function storeOver(context: MemcachedContext, request: StoreRequest, h: number): StoreResult {
  const { keyspace, counters } = context;
  if (keyspace.isLfu) keyspace.use();
  const isSame = request.compareCas === context.version;
  switch (request.mode) {
    case StoreMode.ADD:
      if (!keyspace.isLfu) keyspace.access();
      return StoreResult.NOT_STORED;
    case StoreMode.CAS:
      if (!isSame && request.allowsStale && request.compareCas > 0 && request.compareCas < context.version) {
        counters[Counter.casHits]++;
        context.countInClass(ClassCounter.casHits);
        return storeStale(context, request, h);
      }
      counters[isSame ? Counter.casHits : Counter.casBadval]++;
      context.countInClass(isSame ? ClassCounter.casHits : ClassCounter.casBadval);
      if (!isSame) return StoreResult.EXISTS;
      break;
    case StoreMode.APPEND:
    case StoreMode.PREPEND:
      if (request.compareCas > 0 && !isSame) return StoreResult.EXISTS;
      return storeJoined(context, request, h);
  }
  if (!keyspace.hasStaged && overwrite(context, request)) return StoreResult.STORED;
  return commit(context, request, h, 0, request.clientFlags, request.expiryMs);
}

/** The client's version is old: its value is kept, but marked stale, with the expiry and the won token of the item it replaces. */
function storeStale(context: MemcachedContext, request: StoreRequest, h: number): StoreResult {
  const { keyspace } = context;
  const state = Encoding.STALE | (keyspace.stateFlags & Encoding.WIN_SENT);
  return commit(context, request, h, state, request.clientFlags, keyspace.expiryMs);
}

/** Old and new value together, in a new item with the old one's flags and expiry. */
function storeJoined(context: MemcachedContext, request: StoreRequest, h: number): StoreResult {
  const { keyspace } = context;
  const oldBytes = keyspace.valueLength;
  const newBytes = request.valueBytes;
  const { clientFlags, expiryMs } = keyspace;
  if (!fitsItemSize(context, context.keyLength, oldBytes + newBytes, clientFlags)) return StoreResult.NOT_STORED;
  if (!context.stageKey(h, oldBytes + newBytes)) {
    context.counters[Counter.storeNoMemory]++;
    return StoreResult.NO_MEMORY;
  }
  // Staging moves the cursor, but takes no item that was found a moment ago.
  if (!context.findKey(h)) throw new Error('an item under its lock is gone after staging');
  const { staged, stagedOffset } = keyspace;
  const oldAt = request.mode === StoreMode.APPEND ? stagedOffset : stagedOffset + newBytes;
  const newAt = request.mode === StoreMode.APPEND ? stagedOffset + oldBytes : stagedOffset;
  copyBytes(staged, oldAt, keyspace.value, keyspace.valueOffset, oldBytes);
  copyBytes(staged, newAt, context.input, request.valueOffset, newBytes);
  request.valueBytes = oldBytes + newBytes;
  return commit(context, request, h, 0, clientFlags, expiryMs);
}

/** Writes the request's value over the found one's, where its chunk serves. */
function overwrite(context: MemcachedContext, request: StoreRequest): boolean {
  const { valueOffset, valueBytes, clientFlags, expiryMs } = request;
  return context.keyspace.overwrite(context.input, valueOffset, valueBytes, clientFlags, expiryMs);
}

/** Links the staged item, or stages the request's value first. */
function commit(
  context: MemcachedContext,
  request: StoreRequest,
  h: number,
  encoding: number,
  clientFlags: number,
  expiryMs: number,
): StoreResult {
  const { keyspace } = context;
  const isStaged = keyspace.hasStaged || stageValue(context, request, h);
  if (isStaged && keyspace.commit(ItemType.STRING, encoding, clientFlags, expiryMs)) return StoreResult.STORED;
  context.counters[Counter.storeNoMemory]++;
  return StoreResult.NO_MEMORY;
}
