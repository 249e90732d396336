/**
 * CLIENT TRACKING, TRACKINGINFO, CACHING, GETREDIR: client-side caching, as one connection switches it on and asks about it.
 *
 * What follows from it is messaging/tracking's business. Invariant: client.tracking is set exactly while tracking is on.
 */

import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import type { Tracking } from '../messaging/tracking.js';
import { Attention, type Client } from './client.js';

const NO_TARGET = 'ERR The client ID you want redirect to does not exist';
const NOT_TRACKING =
  'ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled';

type Options = { -readonly [K in keyof Tracking]: Tracking[K] };

/** What the arguments say; null = an error has been replied. */
function parseOptions(context: Context): Options | null {
  const options: Options = {
    broadcast: false,
    prefixes: [],
    optIn: false,
    optOut: false,
    noLoop: false,
    redirect: 0,
    redirectSeat: -1,
    redirectIsBroken: false,
    caching: false,
  };
  const prefixes: string[] = [];
  options.prefixes = prefixes;
  for (let i = 3; i < context.argc; i++) {
    const hasMore = i + 1 < context.argc;
    if (context.argIs(i, 'REDIRECT') && hasMore) {
      if (options.redirect !== 0) return refuse(context, 'ERR A client can only redirect to a single other client');
      options.redirect = context.argInteger(++i);
      if (Number.isNaN(options.redirect)) return refuse(context, NOT_INTEGER);
      if (options.redirect <= 0) return refuse(context, NO_TARGET);
    } else if (context.argIs(i, 'BCAST')) options.broadcast = true;
    else if (context.argIs(i, 'OPTIN')) options.optIn = true;
    else if (context.argIs(i, 'OPTOUT')) options.optOut = true;
    else if (context.argIs(i, 'NOLOOP')) options.noLoop = true;
    else if (context.argIs(i, 'PREFIX') && hasMore) prefixes.push(context.argString(++i));
    else return refuse(context, SYNTAX);
  }
  return options;
}

function refuse(context: Context, text: string): null {
  context.reply.error(text);
  return null;
}

/** Why these options cannot be, or not behind the present ones; null = they can. */
function conflict(options: Options, now: Tracking | null): string | null {
  if (!options.broadcast && options.prefixes.length > 0) return 'ERR PREFIX option requires BCAST mode to be enabled';
  if (now !== null && now.broadcast !== options.broadcast) {
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.";
  }
  if (options.broadcast && (options.optIn || options.optOut)) {
    return 'ERR OPTIN and OPTOUT are not compatible with BCAST';
  }
  if (options.optIn && options.optOut) return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if (now !== null && ((options.optIn && now.optOut) || (options.optOut && now.optIn))) {
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.";
  }
  return options.broadcast ? overlap(options.prefixes, now?.prefixes ?? []) : null;
}

function overlap(prefixes: readonly string[], existing: readonly string[]): string | null {
  for (let i = 0; i < prefixes.length; i++) {
    for (const other of existing) {
      if (!overlaps(prefixes[i], other)) continue;
      return `ERR Prefix '${prefixes[i]}' overlaps with an existing prefix '${other}'. Prefixes for a single client must not overlap.`;
    }
    for (const other of prefixes.slice(i + 1)) {
      if (!overlaps(prefixes[i], other)) continue;
      return `ERR Prefix '${prefixes[i]}' overlaps with another provided prefix '${other}'. Prefixes for a single client must not overlap.`;
    }
  }
  return null;
}

function overlaps(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

export function tracking(context: Context): void {
  const { client, reply } = context;
  const options = parseOptions(context);
  if (options === null) return;
  if (options.redirect === 0) return apply(context, client, options);
  const { hub } = context.executor;
  if (hub.clientOf(options.redirect) !== null) {
    options.redirectSeat = context.keyspace.memory.self;
    return apply(context, client, options);
  }
  if ((context.environment.control?.workerCount ?? 1) === 1) return reply.error(NO_TARGET);
  const on = context.argIs(2, 'ON');
  const off = context.argIs(2, 'OFF');
  context.askWorkers('clientSeat', { id: options.redirect }, (seats) => {
    options.redirectSeat = Math.max(-1, ...seats);
    if (options.redirectSeat < 0) reply.error(NO_TARGET);
    else switchTo(context, client, options, on, off);
  });
}

/** For EXEC, which asks before it runs: whose the client is that will get the invalidations. */
export function askForTarget(context: Context): void {
  const options = parseOptions(context);
  if (options !== null && options.redirect !== 0) {
    context.askWorkers('clientSeat', { id: options.redirect }, () => undefined);
  }
}

function apply(context: Context, client: Client, options: Options): void {
  switchTo(context, client, options, context.argIs(2, 'ON'), context.argIs(2, 'OFF'));
}

function switchTo(context: Context, client: Client, options: Options, on: boolean, off: boolean): void {
  const { reply } = context;
  const { hub } = context.executor;
  if (on) {
    const problem = conflict(options, client.tracking);
    if (problem !== null) return reply.error(problem);
    if (!hub.listen()) return reply.error(NO_MEMORY);
    hub.tracking.enable(client, options);
  } else if (off) {
    hub.tracking.disable(client);
  } else {
    return reply.error(SYNTAX);
  }
  hub.attentionChanged(client);
  reply.ok();
}

export function trackingInfo(context: Context): void {
  const { client, reply } = context;
  const now = client.tracking;
  const flags: string[] = [now === null ? 'off' : 'on'];
  if (now?.broadcast === true) flags.push('bcast');
  if (now?.optIn === true) flags.push('optin');
  if (now?.optIn === true && now.caching) flags.push('caching-yes');
  if (now?.optOut === true) flags.push('optout');
  if (now?.optOut === true && now.caching) flags.push('caching-no');
  if (now?.noLoop === true) flags.push('noloop');
  if (now?.redirectIsBroken === true) flags.push('broken_redirect');
  reply.map(3);
  reply.bulkString('flags');
  reply.set(flags.length);
  for (const flag of flags) reply.bulkString(flag);
  reply.bulkString('redirect');
  reply.integer(now === null ? -1 : now.redirect);
  reply.bulkString('prefixes');
  reply.array(now?.prefixes.length ?? 0);
  for (const prefix of now?.prefixes ?? []) reply.bulkString(prefix);
}

export function caching(context: Context): void {
  const { client, reply } = context;
  const now = client.tracking;
  if ((client.attention & Attention.TRACKING) === 0 || now === null) return reply.error(NOT_TRACKING);
  if (context.argIs(2, 'YES')) {
    if (!now.optIn) {
      return reply.error('ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.');
    }
  } else if (context.argIs(2, 'NO')) {
    if (!now.optOut) {
      return reply.error('ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.');
    }
  } else {
    return reply.error(SYNTAX);
  }
  now.caching = true;
  reply.ok();
}

export function getRedir(context: Context): void {
  context.reply.integer(context.client.tracking?.redirect ?? -1);
}
