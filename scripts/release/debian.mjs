/**
 * Debian packages of any architecture, unpacked into a folder: nothing is installed, the system's own lists stay as they are.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

function aptOptions(folder) {
  return [
    ['APT::Architectures::', 'amd64'],
    ['APT::Architectures::', 'arm64'],
    ['APT::Sandbox::User', 'root'],
    ['Dir::State::Lists', join(folder, 'lists')],
    ['Dir::Cache', join(folder, 'cache')],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** Brings files by `commands` of apt-get into `folder`/downloads, and `unpack` makes `folder`/root of them: once, whole or not at all. */
function fetchOnce(folder, options, commands, unpack) {
  const root = join(folder, 'root');
  if (existsSync(root)) return root;
  const downloads = join(folder, 'downloads');
  for (const each of ['lists/partial', 'cache/archives/partial', 'downloads']) {
    mkdirSync(join(folder, each), { recursive: true });
  }
  for (const command of commands) {
    execFileSync('apt-get', ['-q', ...aptOptions(folder), ...options, ...command], {
      cwd: downloads,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  const draft = `${root}.draft`;
  rmSync(draft, { recursive: true, force: true });
  unpack(downloads, draft);
  renameSync(draft, root);
  return root;
}

/** Unpacks `packages` (name:arch) into a folder under `folder`; returns its path. Throws where apt-get cannot bring them. */
export function unpackDebian(packages, folder) {
  return fetchOnce(folder, [], [['update'], ['download', ...packages]], (downloads, draft) => {
    for (const file of readdirSync(downloads)) execFileSync('dpkg-deb', ['-x', join(downloads, file), draft]);
  });
}

/** The sources of a package with Debian's patches. The system's own lists name binary packages only, so a list is made of them. */
export function unpackDebianSource(name, folder) {
  const format = ['--format', '$(SITE) $(RELEASE) $(COMPONENT)', 'Created-By: Packages'];
  const targets = execFileSync('apt-get', ['indextargets', ...format], { encoding: 'utf8' })
    .trim()
    .split('\n');
  mkdirSync(folder, { recursive: true });
  const list = join(folder, 'sources.list');
  const lines = targets.map((target) => target.split(' ')).map((parts) => `deb-src ${parts.join(' ')}`);
  writeFileSync(list, `${[...new Set(lines)].join('\n')}\n`);
  const options = ['-o', `Dir::Etc::SourceList=${list}`, '-o', 'Dir::Etc::SourceParts=-'];
  return fetchOnce(folder, options, [['update'], ['source', '--download-only', name]], (downloads, draft) => {
    const description = readdirSync(downloads).find((file) => file.endsWith('.dsc'));
    const args = ['--no-check', '-x', join(downloads, description), draft];
    execFileSync('dpkg-source', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  });
}
