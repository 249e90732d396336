/**
 * The current LTS release of Node.js, brought by npm (package node-linux-ARCH) into .cache/, for a second run of the tests.
 *
 * The addon is not rebuilt for it: Node-API is the same across versions, and that this holds is part of what is tested.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

/** Long-term support since October 2026. */
const LTS_MAJOR = 26;
const INSTALL_TIMEOUT_MS = 300_000;

function versionOf(binary) {
  const { status, stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** { binary, version }, or { reason } in words when it cannot be had here. */
export function ltsNode() {
  if (Number(process.versions.node.split('.')[0]) === LTS_MAJOR) {
    return { reason: `this is Node.js ${process.version}, the LTS release, already` };
  }
  const name = `node-linux-${process.arch}`;
  const folder = join(ROOT, '.cache', `node-${LTS_MAJOR}`);
  const binary = join(folder, 'node_modules', name, 'bin/node');
  if (!existsSync(binary)) {
    console.log(`> Installing ${name}@${LTS_MAJOR} (npm, into .cache)`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private": true}\n');
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--no-package-lock', `${name}@${LTS_MAJOR}`];
    const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS });
    if (status !== 0) return { reason: `npm cannot bring it here (${stderr.trim().split('\n')[0]})` };
  }
  const version = versionOf(binary);
  return version === undefined ? { reason: `${name} does not run here (another libc?)` } : { binary, version };
}
