/**
 * SAVE, BGSAVE, BGREWRITEAOF and LASTSAVE: the whole store as a file that Redis reads.
 *
 * SAVE closes the gate, so its file is the store at one moment and everybody waits; the other two leave it to a thread of its own, and their
 * files are less than that (see rdb/snapshot). Invariant: one of them runs at a time; one that must wait is begun by the save schedule.
 */
import { Saving, SharedWord } from '../../layout/counters.js';
import { beginSaving, endSaving } from '../../layout/saving.js';
import { optional, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { lostExpiries, saveFile } from './save-file.js';
import { saveState } from './save-state.js';

const BUSY = 'ERR Background save already in progress';
const REWRITE_BUSY = 'ERR Background append only file rewriting already in progress';
const OTHER_BUSY =
  "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.";
const NO_SERVER = 'ERR this command needs the server';

function save(context: Context): void {
  const { reply, environment, keyspace } = context;
  const { control, counters, settings } = environment;
  if (control === null) return reply.error(NO_SERVER);
  if (!beginSaving(counters.shared, Saving.FOREGROUND)) return reply.error(BUSY);
  let changes: number | null = null;
  try {
    const saved = saveFile(keyspace, settings, () => false);
    changes = saved.changes;
    if (saved.expiriesLost > 0) control.log('warning', lostExpiries(saved.expiriesLost, settings.rdbVersion));
    control.log('notice', `SAVE: ${saved.keys} keys in ${saved.path}, ${saved.bytes} bytes`);
    reply.ok();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    control.log('warning', `SAVE failed: ${reason}`);
    reply.error(`ERR SAVE failed: ${reason.replace(/[\r\n]/g, ' ')}`);
  } finally {
    endSaving(counters.shared, changes);
  }
}

function bgSave(context: Context): void {
  const { reply, environment, argc } = context;
  const { control, counters } = environment;
  if (argc > 2 || (argc === 2 && !context.argIs(1, 'SCHEDULE'))) return reply.error(SYNTAX);
  if (control === null) return reply.error(NO_SERVER);
  const { shared } = counters;
  const saving = Atomics.load(shared, SharedWord.saving);
  if (saving === Saving.BACKGROUND || saving === Saving.FOREGROUND) return reply.error(BUSY);
  if (!context.inTransaction && beginSaving(shared, Saving.BACKGROUND)) {
    control.startSave();
    return reply.simple('Background saving started');
  }
  if (argc === 1 && !context.inTransaction) return reply.error(OTHER_BUSY);
  Atomics.store(shared, SharedWord.saveScheduled, 1);
  reply.simple('Background saving scheduled');
}

function bgRewriteAof(context: Context): void {
  const { reply, environment } = context;
  const { control, counters } = environment;
  if (control === null) return reply.error(NO_SERVER);
  const { shared } = counters;
  if (Atomics.load(shared, SharedWord.saving) === Saving.REWRITE) return reply.error(REWRITE_BUSY);
  if (!context.inTransaction && beginSaving(shared, Saving.REWRITE)) {
    control.startSave();
    return reply.simple('Background append only file rewriting started');
  }
  Atomics.store(shared, SharedWord.rewriteScheduled, 1);
  reply.simple('Background append only file rewriting scheduled');
}

function lastSave(context: Context): void {
  context.reply.integer(saveState(context).savedAtS);
}

const SAVES = {
  flags: Flag.ADMIN | Flag.NOSCRIPT | Flag.NO_ASYNC_LOADING,
  categories: Category.NONE,
  group: 'server',
} as const;

export const saves: readonly CommandSpec[] = [
  {
    ...SAVES,
    name: 'save',
    arity: 1,
    flags: SAVES.flags | Flag.NO_MULTI,
    since: '1.0.0',
    summary: 'Writes all databases into the RDB file, as they are at this moment; nobody else is served meanwhile.',
    complexity: 'O(N) for N keys',
    exclusive: true,
    run: save,
  },
  {
    ...SAVES,
    name: 'bgsave',
    arity: -1,
    since: '1.0.0',
    summary: 'Writes all databases into the RDB file while the server goes on.',
    complexity: 'O(1); a thread of its own does O(N) for N keys',
    history: [['3.2.2', 'SCHEDULE.']],
    args: [optional(tokenArg('SCHEDULE', { since: '3.2.2' }))],
    run: bgSave,
  },
  {
    ...SAVES,
    name: 'bgrewriteaof',
    arity: 1,
    since: '1.0.0',
    summary: 'Writes all databases as an append-only file that Redis reads, while the server goes on.',
    complexity: 'O(1); a thread of its own does O(N) for N keys',
    run: bgRewriteAof,
  },
  {
    name: 'lastsave',
    arity: 1,
    flags: Flag.LOADING | Flag.STALE | Flag.FAST,
    categories: Category.ADMIN | Category.DANGEROUS,
    since: '1.0.0',
    group: 'server',
    summary: 'Returns the Unix time of the last RDB file that was written; without one, of the start of the server.',
    complexity: 'O(1)',
    tips: ['nondeterministic_output'],
    run: lastSave,
  },
];
