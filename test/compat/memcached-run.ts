/** Runs byte scripts against something that answers like memcached, and makes the replies comparable. */
export interface Script {
  readonly name: string;
  readonly steps: readonly string[];
  readonly differs?: Readonly<Record<string, { readonly ours: string | null; readonly why: string }>>;
}

export interface Peer {
  /** Sends bytes and answers what comes back up to and including `MN\r\n`; without it when the connection closes. */
  exchange(request: string): Promise<string>;
}

const END = 'MN\r\n';

interface Step {
  readonly request: string;
  readonly reply: string;
}

async function run(peer: Peer, script: Script): Promise<Step[]> {
  await peer.exchange('flush_all\r\nmn\r\n');
  const versions = new Map<string, string[]>();
  const steps: Step[] = [];
  for (const request of script.steps) {
    const reply = await peer.exchange(`${await fill(peer, request, versions)}mn\r\n`);
    steps.push({ request, reply: reply.endsWith(END) ? reply.slice(0, -END.length) : `${reply}<closed>` });
  }
  return nameVersions(steps);
}

/** Replaces {cas:KEY} and {cas:KEY:-1}. */
async function fill(peer: Peer, request: string, versions: Map<string, string[]>): Promise<string> {
  const [, key, back] = /\{cas:(\w+)(:-1)?\}/.exec(request) ?? [];
  if (key === undefined) return request;
  const reply = await peer.exchange(`mg ${key} c u\r\nmn\r\n`);
  const now = / c(\d+)/.exec(reply)?.[1] ?? '0';
  const seen = versions.get(key) ?? [];
  versions.set(key, seen);
  if (seen.at(-1) !== now) seen.push(now);
  const version = back === undefined ? now : String(Number(now) - 1);
  return request.replace(/\{cas:\w+(:-1)?\}/, version);
}

/** Versions are another server's business: what counts is which are equal. */
function nameVersions(steps: readonly Step[]): Step[] {
  const names = new Map<string, string>();
  const name = (version: string): string => {
    if (!names.has(version)) names.set(version, `#${names.size + 1}`);
    return names.get(version)!;
  };
  return steps.map(({ request, reply }) => ({
    request,
    reply: reply
      // A number that got shorter is padded with spaces or not, as it happens (whether a reply still refers to the item).
      .replace(/^(VALUE \S+ \d+ )\d+(.*\r\n\d+) *\r$/gm, '$1N$2\r')
      .replace(
        /^(VALUE \S+ \d+ (?:\d+|N)) (\d+)\r$/gm,
        (_, head: string, version: string) => `${head} ${name(version)}\r`,
      )
      .replace(/^((?:HD|VA|EX|NS|NF|EN)\b[^\r]*? c)(\d+)/gm, (_, head: string, version: string) =>
        version === '0' ? `${head}0` : head + name(version),
      ),
  }));
}

/** Long replies in an assertion are unreadable. */
function shorten(steps: readonly Step[]): Step[] {
  const short = (text: string): string =>
    text.replace(/(.)\1{99,}/g, (run, letter: string) => `<${run.length} x ${letter}>`);
  return steps.map(({ request, reply }) => ({ request: short(request), reply: short(reply) }));
}

/** Where our steps differ from theirs without being declared; null = nowhere. */
function difference(script: Script, ours: readonly Step[], theirs: readonly Step[]): string | null {
  for (const [i, { request, reply }] of ours.entries()) {
    const declared = script.differs?.[script.steps[i]];
    const expected = declared === undefined ? theirs[i].reply : declared.ours;
    if (expected === null || reply === expected) continue;
    const lines = [`to ${JSON.stringify(request)}`, `expected ${JSON.stringify(expected)}`];
    if (declared !== undefined) lines.push(`(declared: ${declared.why})`);
    return [...lines, `got ${JSON.stringify(reply)}`].join('\n');
  }
  return null;
}

/** memcached's clock ticks in seconds: a tick within a script shows as one second less to live. */
const ATTEMPTS = 3;

/** Throws when a script's replies differ, except as declared, three times in a row. */
export async function compare(script: Script, ours: Peer, theirs: Peer): Promise<void> {
  let found: string | null = null;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const expected = shorten(await run(theirs, script));
    found = difference(script, shorten(await run(ours, script)), expected);
    if (found === null) return;
  }
  throw new Error(`${script.name}: ${found}`);
}
