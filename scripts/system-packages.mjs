/**
 * The programs of other projects that the tests run beside ours, and the Lua library that scripts need: installed where this is root on Debian, else named.
 *
 * Packages come without their services, because a redis-server on port 6379 would stand in the way of the user: a policy-rc.d
 * that forbids starting is in place while they install. Where the machine has its own policy, what it started is stopped.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { hasCommand, hasLua } from './prepare.mjs';

const POLICY_PATH = '/usr/sbin/policy-rc.d';

/** Command that shows the package is there -> Debian package. */
const TEST_PROGRAMS = new Map([
  ['redis-server', 'redis-server'],
  ['redis-cli', 'redis-tools'],
  ['redis-benchmark', 'redis-tools'],
  ['memcached', 'memcached'],
  ['memccapable', 'libmemcached-tools'],
  // For the virtual machine of test/devices, 20 MB together.
  ...(process.arch === 'x64' ? [['qemu-system-x86_64', 'qemu-system-x86']] : []),
  ['busybox', 'busybox-static'],
  ['mkfs.ext4', 'e2fsprogs'],
]);

/** Not a program: the addon links it when it is built, so it must be there before. */
const LUA_PACKAGE = 'liblua5.1-0-dev';

function missingPrograms() {
  const programs = [...TEST_PROGRAMS.keys()].filter((name) => !hasCommand(name));
  return hasLua() ? programs : [...programs, LUA_PACKAGE];
}

function isDebianRoot() {
  return existsSync('/etc/debian_version') && hasCommand('apt-get') && process.getuid() === 0;
}

function aptGet(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const { status, stderr } = spawnSync('apt-get', args, { env, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  return { isDone: status === 0, reason: stderr.trim().split('\n').at(-1) };
}

/** The package was not there before, so a service of its name runs because of us. Not running is fine. */
function stopService(name) {
  spawnSync('service', [name, 'stop'], { stdio: 'ignore' });
}

/** Installs what is missing, if it may; returns the names still missing. */
export function installTestPrograms() {
  const missing = missingPrograms();
  if (missing.length === 0 || !isDebianRoot()) return missing;

  const packages = [...new Set(missing.map((name) => TEST_PROGRAMS.get(name) ?? name))];
  console.log(`> Installing ${packages.join(', ')} (apt-get)`);
  const isOwnPolicy = !existsSync(POLICY_PATH);
  if (isOwnPolicy) writeFileSync(POLICY_PATH, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    const args = ['install', '-y', '--no-install-recommends', ...packages];
    let result = aptGet(args);
    if (!result.isDone) {
      const update = aptGet(['update']);
      if (!update.isDone) console.log(`  apt-get update: ${update.reason}`);
      result = aptGet(args);
    }
    if (!result.isDone) console.log(`  apt-get install: ${result.reason}`);
  } finally {
    if (isOwnPolicy) rmSync(POLICY_PATH);
  }
  if (!isOwnPolicy) for (const name of packages) stopService(name);
  return missingPrograms();
}
