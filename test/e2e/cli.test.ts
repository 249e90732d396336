/** The command as a user meets it: a process of its own, its exit codes and what it prints. Needs the build. */
import { describe, expect, it } from 'vitest';
import { entresol } from './command.js';

/** Runs before the command: the process believes to be elsewhere. */
function pretend(property: string, value: string): string[] {
  const script = `Object.defineProperty(process, ${JSON.stringify(property)}, { value: ${value} });`;
  return ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
}

describe('entresol', () => {
  it('prints version and help with exit code 0', async () => {
    expect(await entresol(['--version'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^entresol \d/),
      err: '',
    });
    expect(await entresol(['serve', '--help'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('--memcached-port'),
    });
  });

  it('ends with 2 and one line for a wrong option', async () => {
    expect(await entresol(['serve', '--wokers', '2'])).toEqual({
      code: 2,
      out: '',
      err: 'entresol: --wokers: unknown option. Did you mean --workers? See entresol serve --help.\n',
    });
  });

  it.each([
    ['platform', '"darwin"', 'entresol runs on Linux on x64 and arm64; this is darwin on'],
    ['arch', '"ia32"', 'this is linux on ia32'],
    ['versions', '{ node: "18.20.0" }', 'entresol needs Node.js 20 or newer'],
  ])('refuses another %s in one line', async (property, value, message) => {
    const outcome = await entresol(['serve'], pretend(property, value));
    expect(outcome).toMatchObject({ code: 1, out: '', err: expect.stringContaining(message) });
    expect(outcome.err.trimEnd()).not.toContain('\n');
  });
});
