/**
 * Parameters of Redis that have no counterpart here: programs and configuration tools set them, so they are checked, kept and
 * shown, and have no effect.
 *
 * Invariant: a value that is kept is one that Redis would take; names have no meaning anywhere else in the program.
 */
import { integer, type Kind, oneOf, size, text, ValueError, yesNo } from './kinds.js';

interface Accepted {
  readonly kind: Kind<unknown>;
  readonly default: string;
  /** Redis's older name of the same parameter. */
  readonly alias?: string;
  /** CONFIG SET refuses it. */
  readonly isFixed?: true;
  /** CONFIG GET shows it only when it is asked for by its exact name. */
  readonly isHidden?: true;
}

const INT_MAX = 2 ** 31 - 1;
const LONG_MAX = Number.MAX_SAFE_INTEGER;

const no = { kind: yesNo(), default: 'no' };
const yes = { kind: yesNo(), default: 'yes' };
const words = (value = ''): Accepted => ({ kind: text('TEXT', 4096), default: value });
const count = (value: number, min = 0, max = INT_MAX): Accepted => ({
  kind: integer(min, max),
  default: String(value),
});
const bytes = (value: number, min = 0): Accepted => ({ kind: size(min, 2 ** 50), default: String(value) });
const onSignal = { kind: text('default|save|nosave|now|force', 64), default: 'default' };

const ACCEPTED: Readonly<Record<string, Accepted>> = {
  'active-defrag-cycle-max': count(25, 1, 99),
  'active-defrag-cycle-min': count(1, 1, 99),
  'active-defrag-ignore-bytes': bytes(100 * 1024 ** 2, 1),
  'active-defrag-max-scan-fields': count(1000, 1, LONG_MAX),
  'active-defrag-threshold-lower': count(10, 0, 1000),
  'active-defrag-threshold-upper': count(100, 0, 1000),
  'active-expire-effort': count(1, 1, 10),
  activedefrag: no,
  activerehashing: yes,
  'aof-rewrite-incremental-fsync': yes,
  'aof-timestamp-enabled': no,
  'aof-use-rdb-preamble': yes,
  'bind-source-addr': words(),
  'crash-log-enabled': yes,
  'crash-memcheck-enabled': yes,
  daemonize: { ...no, isFixed: true },
  'dynamic-hz': yes,
  'jemalloc-bg-thread': yes,
  'key-load-delay': { ...count(0, -INT_MAX), isHidden: true },
  'lazyfree-lazy-eviction': no,
  'lazyfree-lazy-expire': no,
  'lazyfree-lazy-server-del': no,
  'lazyfree-lazy-user-del': no,
  'lazyfree-lazy-user-flush': no,
  'list-compress-depth': count(0),
  logfile: { ...words(), isFixed: true },
  masterauth: words(),
  masteruser: words(),
  'maxmemory-eviction-tenacity': count(10, 0, 100),
  'maxmemory-samples': count(5, 1),
  'min-replicas-max-lag': { ...count(10), alias: 'min-slaves-max-lag' },
  'min-replicas-to-write': { ...count(0), alias: 'min-slaves-to-write' },
  'no-appendfsync-on-rewrite': no,
  'oom-score-adj': { kind: oneOf('no', 'yes', 'relative', 'absolute'), default: 'no' },
  'oom-score-adj-values': words('0 200 800'),
  pidfile: { ...words(), isFixed: true },
  'rdb-key-save-delay': { ...count(0, -INT_MAX), isHidden: true },
  'repl-backlog-size': bytes(1024 ** 2, 1),
  'repl-backlog-ttl': count(3600, 0, LONG_MAX),
  'repl-disable-tcp-nodelay': no,
  'repl-diskless-load': { kind: oneOf('disabled', 'on-empty-db', 'swapdb'), default: 'disabled' },
  'repl-diskless-sync': yes,
  'repl-diskless-sync-delay': count(5),
  'repl-diskless-sync-max-replicas': count(0),
  'repl-ping-replica-period': { ...count(10, 1), alias: 'repl-ping-slave-period' },
  'repl-timeout': count(60, 1),
  'replica-announce-ip': { ...words(), alias: 'slave-announce-ip' },
  'replica-announce-port': { ...count(0, 0, 65_535), alias: 'slave-announce-port' },
  'replica-announced': yes,
  'replica-ignore-maxmemory': { ...yes, alias: 'slave-ignore-maxmemory' },
  'replica-lazy-flush': { ...no, alias: 'slave-lazy-flush' },
  'replica-priority': { ...count(100), alias: 'slave-priority' },
  'replica-read-only': { ...yes, alias: 'slave-read-only' },
  'replica-serve-stale-data': { ...yes, alias: 'slave-serve-stale-data' },
  replicaof: { ...words(), alias: 'slaveof', isFixed: true },
  'sanitize-dump-payload': { kind: oneOf('no', 'yes', 'clients'), default: 'no' },
  'set-proc-title': { ...yes, isFixed: true },
  'shutdown-on-sigint': onSignal,
  'shutdown-on-sigterm': onSignal,
  'shutdown-timeout': count(10),
  supervised: { ...words('no'), isFixed: true },
  'tcp-keepalive': count(300),
};

const names = new Map<string, string>();
for (const [name, { alias }] of Object.entries(ACCEPTED)) {
  names.set(name, name);
  if (alias !== undefined) names.set(alias, name);
}

export function isAccepted(name: string): boolean {
  return names.has(name);
}

/** [name, value] of every one of them, older names included; hidden ones only if `asked` has their name. */
export function acceptedValues(kept: readonly string[], asked: readonly string[]): [name: string, value: string][] {
  const values = new Map(kept.map(split));
  return [...names]
    .filter(([shown, name]) => ACCEPTED[name].isHidden !== true || asked.includes(shown))
    .map(([shown, name]) => [shown, values.get(name) ?? ACCEPTED[name].default]);
}

/** `kept` with one more value. Throws ValueError. */
export function acceptValue(kept: readonly string[], givenName: string, value: string): readonly string[] {
  const name = names.get(givenName)!;
  const { kind, isFixed } = ACCEPTED[name];
  if (isFixed) throw new ValueError("can't set immutable config");
  const canonical = kind.format(kind.parse(value));
  const others = kept.filter((line) => split(line)[0] !== name);
  return canonical === ACCEPTED[name].default ? others : [...others, `${name} ${canonical}`];
}

/** The setting that holds them: 'NAME VALUE' each. */
export function acceptedLines(): Kind<readonly string[]> {
  const format = (list: readonly string[]): string => list.join('\n');
  return {
    placeholder: "'NAME VALUE'",
    range: '',
    listSeparator: '\n',
    isRepeatable: true,
    parse(lines) {
      let kept: readonly string[] = [];
      for (const line of lines.split('\n').filter((each) => each.trim() !== '')) {
        const [name, value] = split(line);
        if (!names.has(name))
          throw new ValueError(`must be parameters of Redis that have no setting here; '${name}' is none`);
        kept = acceptValue(kept, name, value);
      }
      return kept;
    },
    format,
    show: format,
  };
}

function split(line: string): [name: string, value: string] {
  const blank = line.indexOf(' ');
  return blank < 0 ? [line, ''] : [line.slice(0, blank), line.slice(blank + 1)];
}
