/**
 * Consumer groups: XGROUP and XACK.
 */
import { NO_COUNTER } from '../../layout/stream.js';
import { Notify } from '../../store/change-feed.js';
import { Change } from '../../store/collections/collection.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { integerArg, keyArg, oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER } from '../errors.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  areIds,
  argIsCharacter,
  idArg,
  looseIdArg,
  openStream,
  openStreamToChange,
  parseIdArg,
  stream,
} from './stream-arguments.js';
import { findGroupArg, groups, noGroupForKey, pending } from './stream-group-arguments.js';

const NO_KEY =
  'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.';
const BUSY_GROUP = 'BUSYGROUP Consumer Group name already exists';
const COUNTER_NEGATIVE = 'ERR value for ENTRIESREAD must be positive or -1';
const DOLLAR = 0x24;

const id = new StreamId();

/** What the options of CREATE and SETID say. */
let makesStream = false;
let entriesRead = NO_COUNTER;

function syntaxError(context: Context): string {
  return `ERR unknown subcommand or wrong number of arguments for '${context.argString(1).slice(0, 128)}'. Try XGROUP HELP.`;
}

/** Reads the options from argument 5 on; false after an error reply. */
function readOptions(context: Context, mayMake: boolean): boolean {
  const { argc, reply } = context;
  makesStream = false;
  entriesRead = NO_COUNTER;
  for (let i = 5; i < argc; i++) {
    if (mayMake && context.argIs(i, 'MKSTREAM')) {
      makesStream = true;
    } else if (context.argIs(i, 'ENTRIESREAD') && i + 1 < argc) {
      entriesRead = context.argInteger(++i);
      let refused = '';
      if (Number.isNaN(entriesRead)) refused = NOT_INTEGER;
      else if (entriesRead < 0 && entriesRead !== NO_COUNTER) refused = COUNTER_NEGATIVE;
      if (refused !== '') {
        reply.error(refused);
        return false;
      }
    } else {
      reply.error(syntaxError(context));
      return false;
    }
  }
  return true;
}

/** Opens the stream of the key, argument 2; false after an error reply. */
function openToChange(context: Context, mayBeAbsent: boolean): boolean {
  if (!openStream(context, context.keyHash, 2)) return false;
  if (stream.collection.exists) context.use();
  else if (!mayBeAbsent) context.reply.error(NO_KEY);
  return stream.collection.exists || mayBeAbsent;
}

/** The same and finds the group, argument 3. */
function openGroup(context: Context): boolean {
  if (!openToChange(context, false)) return false;
  if (findGroupArg(context, 3)) return true;
  context.reply.error(noGroupForKey(context));
  return false;
}

function create(context: Context): void {
  const { reply, argc } = context;
  if (!readOptions(context, true) || !openToChange(context, makesStream)) return;
  if (argc > 8) return reply.error(syntaxError(context));
  if (argIsCharacter(context, 4, DOLLAR)) id.set(stream.lastId);
  else if (!idArg(context, 4, id)) return;
  const { collection } = stream;
  const isNew = !collection.exists;
  if (collection.create() !== Change.DONE) return reply.error(NO_MEMORY);
  if (findGroupArg(context, 3)) return reply.error(BUSY_GROUP);
  if (groups.create(id, entriesRead) !== Change.DONE) {
    if (isNew) collection.removeKey();
    return reply.error(NO_MEMORY);
  }
  context.notify(Notify.STREAM, 'xgroup-create', 2);
  reply.ok();
}

function setId(context: Context): void {
  const { reply, argc } = context;
  if (!readOptions(context, false) || !openGroup(context)) return;
  if (argc !== 5 && argc !== 7) return reply.error(syntaxError(context));
  if (argIsCharacter(context, 4, DOLLAR)) id.set(stream.lastId);
  else if (!looseIdArg(context, 4, id)) return;
  groups.lastId.set(id);
  groups.entriesRead = entriesRead;
  groups.save();
  context.notify(Notify.STREAM, 'xgroup-setid', 2);
  reply.ok();
}

function destroy(context: Context): void {
  const { reply } = context;
  if (!openToChange(context, false)) return;
  if (!findGroupArg(context, 3)) return reply.integer(0);
  while (groups.consumerCount > 0) {
    groups.loadConsumer(0);
    pending.removeOwned(groups.consumer);
    groups.removeConsumer();
  }
  groups.remove();
  context.notify(Notify.STREAM, 'xgroup-destroy', 2);
  reply.integer(1);
}

function createConsumer(context: Context): void {
  const { reply, input } = context;
  if (!openGroup(context)) return;
  if (groups.findConsumer(input, context.argOffset(4), context.argLength(4))) return reply.integer(0);
  if (groups.createConsumer(context.wallMs) !== Change.DONE) return reply.error(NO_MEMORY);
  context.notify(Notify.STREAM, 'xgroup-createconsumer', 2);
  reply.integer(1);
}

function deleteConsumer(context: Context): void {
  const { reply, input } = context;
  if (!openGroup(context)) return;
  if (!groups.findConsumer(input, context.argOffset(4), context.argLength(4))) return reply.integer(0);
  const removed = pending.removeOwned(groups.consumer);
  groups.removeConsumer();
  context.notify(Notify.STREAM, 'xgroup-delconsumer', 2);
  reply.integer(removed);
}

function xack(context: Context): void {
  const { reply } = context;
  const collection = openStreamToChange(context);
  if (collection === null) return;
  if (!findGroupArg(context, 2)) return reply.integer(0);
  if (!areIds(context, 3)) return;
  let acknowledged = 0;
  for (let i = 3; i < context.argc; i++) {
    if (!parseIdArg(context, i, id) || !pending.find(id)) continue;
    pending.remove();
    acknowledged++;
  }
  reply.integer(acknowledged);
}

const KEY = keyArg('key');
const GROUP = stringArg('group');
const CONSUMER = stringArg('consumer');
const COMMON = { categories: Category.STREAM, group: 'stream', since: '5.0.0' } as const;
const ID = oneOf('id-selector', [stringArg('id'), { ...tokenArg('$'), name: 'new-id' }]);
const ENTRIES_READ = integerArg('entries-read', { token: 'ENTRIESREAD', optional: true, since: '7.0.0' });
const ENTRIES_READ_HISTORY = [['7.0.0', 'The option ENTRIESREAD.']] as const;

export const streamGroups: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'xgroup',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    summary: 'Commands that manage consumer groups.',
    complexity: 'Depends on the subcommand.',
    subcommands: [
      {
        ...COMMON,
        name: 'create',
        arity: -5,
        flags: Flag.WRITE | Flag.DENYOOM,
        keys: [keyAt(2, KeyUse.RW | KeyUse.INSERT)],
        summary: 'Creates a consumer group.',
        complexity: 'O(log(N)) for N groups',
        history: ENTRIES_READ_HISTORY,
        args: [KEY, GROUP, ID, tokenArg('MKSTREAM', { optional: true }), ENTRIES_READ],
        run: create,
      },
      {
        ...COMMON,
        name: 'createconsumer',
        arity: 5,
        flags: Flag.WRITE | Flag.DENYOOM,
        keys: [keyAt(2, KeyUse.RW | KeyUse.INSERT)],
        since: '6.2.0',
        summary: 'Creates a consumer in a group.',
        complexity: 'O(log(N)) for N consumers',
        args: [KEY, GROUP, CONSUMER],
        run: createConsumer,
      },
      {
        ...COMMON,
        name: 'delconsumer',
        arity: 5,
        flags: Flag.WRITE,
        keys: [keyAt(2, KeyUse.RW | KeyUse.DELETE)],
        summary: 'Deletes a consumer; returns how much was pending for it.',
        complexity: 'O(M*log(N)) for M entries pending for it of N',
        args: [KEY, GROUP, CONSUMER],
        run: deleteConsumer,
      },
      {
        ...COMMON,
        name: 'destroy',
        arity: 4,
        flags: Flag.WRITE,
        keys: [keyAt(2, KeyUse.RW | KeyUse.DELETE)],
        summary: 'Deletes a consumer group with all that is pending in it.',
        complexity: 'O(N*log(N)) for N entries pending in it',
        args: [KEY, GROUP],
        run: destroy,
      },
      {
        ...COMMON,
        name: 'setid',
        arity: -5,
        flags: Flag.WRITE,
        keys: [keyAt(2, KeyUse.RW | KeyUse.UPDATE)],
        summary: 'Sets the last id that a group was given.',
        complexity: 'O(log(N)) for N groups',
        history: ENTRIES_READ_HISTORY,
        args: [KEY, GROUP, ID, { ...ENTRIES_READ, name: 'entriesread' }],
        run: setId,
      },
      helpCommand('xgroup', 'stream', Category.STREAM, '5.0.0'),
    ],
  },
  {
    ...COMMON,
    name: 'xack',
    arity: -4,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Acknowledges entries: they are pending no more; returns how many were.',
    complexity: 'O(M*log(N)) for M ids and N entries pending',
    args: [KEY, GROUP, stringArg('id', { multiple: true })],
    repeatable: true,
    run: xack,
  },
];
