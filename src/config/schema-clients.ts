/** The settings of clients: who may connect, what each of them may take, and the users. */
import { bytesOrPercent, integer, oneOf, secret, size, text, userLines, yesNo } from './kinds.js';
import { declare, type Setting } from './setting.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
const TIB = 1024 * GIB;

export type PubsubDefault = 'resetchannels' | 'allchannels';

export interface ClientSettings {
  requirepass: string;
  protectedMode: boolean;
  maxclients: number;
  timeout: number;
  clientOutputBufferSoft: number;
  clientOutputBufferHard: number;
  pubsubOutputBufferSoft: number;
  pubsubOutputBufferHard: number;
  pubsubOutputBufferSeconds: number;
  clientQueryBufferLimit: number;
  maxmemoryClients: number;
  protoMaxBulkLen: number;
  busyReplyThreshold: number;

  user: readonly string[];
  aclfile: string;
  aclPubsubDefault: PubsubDefault;
  acllogMaxLen: number;
}

const LIVE = { live: true };

export const clientSchema: { readonly [K in keyof ClientSettings]: Setting<ClientSettings[K]> } = {
  requirepass: declare(
    'Clients and limits',
    secret('PASSWORD', 512),
    '',
    'Password that clients must give (AUTH; the first set of a memcached connection); empty = none. Prefer the environment or a file: other users see command lines.',
    { live: true, redis: ['requirepass'] },
  ),
  protectedMode: declare('Clients and limits', yesNo(), true, 'Refuse to serve other machines without a password.', {
    live: true,
    redis: ['protected-mode'],
  }),
  maxclients: declare('Clients and limits', integer(1, 1_000_000), 10_000, 'Most connections at once.', {
    live: true,
    redis: ['maxclients'],
  }),
  timeout: declare(
    'Clients and limits',
    integer(0, 2_000_000, 'SECONDS'),
    0,
    'Close connections idle for so many seconds; 0 = never.',
    { live: true, redis: ['timeout'] },
  ),
  clientOutputBufferSoft: declare(
    'Clients and limits',
    size(64 * KIB, GIB),
    MIB,
    'Unsent replies of a connection above which the server reads no more commands from it.',
    LIVE,
  ),
  clientOutputBufferHard: declare(
    'Clients and limits',
    size(MIB, 4 * GIB, true),
    256 * MIB,
    'Unsent replies of a connection above which it is closed; 0 = never.',
    LIVE,
  ),
  pubsubOutputBufferHard: declare(
    'Clients and limits',
    size(MIB, 4 * GIB, true),
    32 * MIB,
    'The same for a connection that subscribes to channels: messages that it has not taken; 0 = never.',
    LIVE,
  ),
  pubsubOutputBufferSoft: declare(
    'Clients and limits',
    size(64 * KIB, 4 * GIB, true),
    8 * MIB,
    'Unsent messages of a subscriber above which it is closed after some seconds; 0 = never.',
    LIVE,
  ),
  pubsubOutputBufferSeconds: declare(
    'Clients and limits',
    integer(0, 2_000_000, 'SECONDS'),
    60,
    'How many seconds a subscriber may be above its soft limit.',
    LIVE,
  ),
  clientQueryBufferLimit: declare(
    'Clients and limits',
    size(MIB, 4 * GIB),
    GIB,
    'Most bytes of one unfinished command.',
    { live: true, redis: ['client-query-buffer-limit'] },
  ),
  maxmemoryClients: declare(
    'Clients and limits',
    bytesOrPercent(16 * TIB),
    0,
    'Most memory of all clients together, in bytes or in % of maxmemory: above it, those that hold most are closed; 0 = no limit.',
    { live: true, redis: ['maxmemory-clients'] },
  ),
  protoMaxBulkLen: declare(
    'Clients and limits',
    size(MIB, 512 * MIB),
    512 * MIB,
    'Largest argument of a Redis command, and so the largest value.',
    { live: true, redis: ['proto-max-bulk-len'] },
  ),
  busyReplyThreshold: declare(
    'Clients and limits',
    integer(0, 2 ** 31 - 1, 'MS'),
    5000,
    'From when on a running script can be killed and others get BUSY; 0 = never.',
    { live: true, redis: ['busy-reply-threshold', 'lua-time-limit'] },
  ),

  user: declare(
    'Users',
    userLines(),
    [],
    "A user and its rights as for ACL SETUSER: 'NAME RULE ...'. May be given several times; in a file as an array.",
    { isHidden: true },
  ),
  aclfile: declare(
    'Users',
    text('FILE', 4096),
    '',
    'File with the users, one a line, for ACL LOAD and SAVE; empty = none. A relative path starts at the pool. Excludes `user`.',
    { redis: ['aclfile'] },
  ),
  aclPubsubDefault: declare(
    'Users',
    oneOf('resetchannels', 'allchannels'),
    'resetchannels',
    'The channels that a new user may use: none, or all.',
    { live: true, redis: ['acl-pubsub-default'] },
  ),
  acllogMaxLen: declare('Users', integer(0, 100_000), 128, 'Entries that ACL LOG keeps.', {
    live: true,
    redis: ['acllog-max-len'],
  }),
};
