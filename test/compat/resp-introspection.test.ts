/**
 * COMMAND against a real redis-server: every command that both have must have the same arity, flags, keys, categories and tips.
 *
 * Where we mean something else, it is declared here with the reason.
 */
import { expect, it } from 'vitest';
import { describeWithRedis } from '../helpers/redis-oracle.js';
import { parseReply } from '../helpers/resp-reply.js';

type Info = [string, number, string[], number, number, number, string[], string[], unknown[], Info[]];

/** Flags of ours that Redis's command does not have. */
const EXTRA_FLAGS: readonly { readonly command: RegExp; readonly flag: string; readonly because: string }[] = [
  {
    command: /^(client\|unblock|config\|rewrite|acl\|(setuser|deluser|load|save)|debug)$/,
    flag: 'no_multi',
    because: 'other threads are asked, which a transaction cannot wait for',
  },
  { command: /^(auth|hello)$/, flag: 'skip_slowlog', because: 'passwords do not belong into the slow log' },
  { command: /^debug$/, flag: 'movablekeys', because: 'keys of DEBUG OBJECT are locked, so they are found' },
  { command: /^quit$/, flag: 'no_auth', because: '7.0 treats QUIT apart; 7.2 has it as a command' },
];

/** Facts that differ between the oracle's version and 7.2, or by our design. */
const DIFFERENT: readonly { readonly command: RegExp; readonly field: number; readonly because: string }[] = [
  { command: /^(quit|cluster\|(shards|slots))$/, field: 2, because: '7.2 flags' },
  { command: /^z(rev)?rank$/, field: 1, because: '7.2: WITHSCORE' },
  { command: /^command\|getkeys/, field: 1, because: '7.0 asks for one argument more' },
  { command: /./, field: 7, because: 'tips: 7.0 and 7.2 differ in many; compared by eye' },
  { command: /^debug$/, field: 8, because: 'keys of DEBUG OBJECT are locked, so they are found' },
  {
    command: /^(b[lr]pop|blmpop|blmove|brpoplpush|bzpopm(in|ax)|bzmpop)$/,
    field: 2,
    because: '7.2: allowed in scripts, where they do not wait',
  },
  { command: /^wait$/, field: 2, because: '7.2: blocking, and allowed in scripts' },
  { command: /^wait$/, field: 6, because: '7.2: blocking' },
];

const sorted = (list: readonly string[]): string[] => [...list].sort();

describeWithRedis('COMMAND', (peers) => {
  it('INFO of every command', async () => {
    const { ours } = await peers.askBoth('COMMAND');
    const commands = parseReply(ours) as Info[];
    const compared: string[] = [];
    const differences: unknown[] = [];
    for (const [name] of commands) {
      const { ours: mine, theirs } = await peers.askBoth(['COMMAND', 'INFO', name]);
      const [[our], [their]] = [parseReply(mine) as Info[], parseReply(theirs) as (Info | null)[]];
      if (their !== null) compareInfo(our, their, compared, differences);
    }
    expect(differences).toEqual([]);
    expect(compared.length).toBeGreaterThan(60);
  });

  it('GETKEYS', () =>
    peers.compare([
      'COMMAND GETKEYS',
      'COMMAND GETKEYS FOO x',
      'COMMAND GETKEYS GET a',
      'COMMAND GETKEYS GET a b',
      'COMMAND GETKEYS SET a b',
      'COMMAND GETKEYS WATCH a b c',
      'COMMAND GETKEYS MEMORY USAGE a',
      'COMMAND GETKEYSANDFLAGS GET a',
      'COMMAND GETKEYSANDFLAGS SET a b',
    ]));

  it('LIST, COUNT, INFO of what is not there', () =>
    peers.compare([
      'COMMAND LIST FOO',
      'COMMAND LIST FILTERBY FOO x',
      'COMMAND LIST FILTERBY MODULE nomodule',
      'COMMAND LIST FILTERBY PATTERN select',
      'COMMAND LIST FILTERBY ACLCAT nocategory',
      'COMMAND INFO nocommand',
      'COMMAND DOCS nocommand',
      'COMMAND COUNT x',
    ]));

  it('DOCS of all commands is well formed, in both versions of the protocol', async () => {
    for (const step of ['COMMAND DOCS', 'COMMAND DOCS set config']) {
      const { ours } = await peers.askBoth(step);
      const flat = parseReply(ours) as unknown[];
      expect(flat.length % 2).toBe(0);
      for (let i = 1; i < flat.length; i += 2) expect((flat[i] as unknown[])[0]).toBe('summary');
    }
  });
});

function compareInfo(our: Info, their: Info, compared: string[], differences: unknown[]): void {
  const [name] = our;
  compared.push(name);
  const ourFlags = our[2].filter(
    (flag) => their[2].includes(flag) || !EXTRA_FLAGS.some((extra) => extra.command.test(name) && extra.flag === flag),
  );
  const check = (field: number, ours: unknown, theirs: unknown): void => {
    if (DIFFERENT.some((difference) => difference.command.test(name) && difference.field === field)) return;
    if (JSON.stringify(ours) !== JSON.stringify(theirs)) differences.push({ name, field, ours, theirs });
  };
  check(1, our[1], their[1]);
  check(2, sorted(ourFlags), sorted(their[2]));
  check(3, our.slice(3, 6), their.slice(3, 6));
  check(6, sorted(our[6]), sorted(their[6]));
  // Notes are prose.
  const specs = (their[8] as unknown[][]).map((spec) => (spec[0] === 'notes' ? spec.slice(2) : spec));
  check(8, our[8], specs);
  for (const sub of our[9]) {
    const counterpart = their[9].find(([other]) => other === sub[0]);
    if (counterpart !== undefined) compareInfo(sub, counterpart, compared, differences);
  }
}
