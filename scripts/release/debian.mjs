/**
 * Debian packages of any architecture, unpacked into a folder: nothing is installed, the system's own lists stay as they are.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
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

/** Unpacks `packages` (name:arch) into `folder`/root, once; returns that path. Throws where apt-get cannot bring them. */
export function unpackDebian(packages, folder) {
  const root = join(folder, 'root');
  if (existsSync(root)) return root;
  const downloads = join(folder, 'downloads');
  for (const each of ['lists/partial', 'cache/archives/partial', 'downloads'])
    mkdirSync(join(folder, each), { recursive: true });
  const apt = (args) =>
    execFileSync('apt-get', ['-q', ...aptOptions(folder), ...args], {
      cwd: downloads,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  apt(['update']);
  apt(['download', ...packages]);
  // Complete or absent: a run cut short begins anew.
  const draft = `${root}.draft`;
  rmSync(draft, { recursive: true, force: true });
  for (const file of readdirSync(downloads)) execFileSync('dpkg-deb', ['-x', join(downloads, file), draft]);
  renameSync(draft, root);
  return root;
}
