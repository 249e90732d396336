/**
 * A Linux kernel for the virtual machine of test/devices, in .cache/guest-kernel/: Debian's small one for clouds, taken out of its package
 * (27 MB) without installing it, with the modules that make a range of memory a DAX device.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hasCommand, ROOT } from './prepare.mjs';

const FOLDER = join(ROOT, '.cache/guest-kernel');
const META_PACKAGE = 'linux-image-cloud-amd64';
const MODULES = /\/(libnvdimm|nd_btt|nd_pmem|nd_e820)\.ko(\.xz)?$/;

function run(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${command}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
}

function* filesUnder(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) yield join(entry.parentPath, entry.name);
  }
}

function fetchInto(draft) {
  const facts = run('apt-cache', ['depends', '--important', META_PACKAGE]);
  const name = /Depends: (linux-image-\S+)/.exec(facts)?.[1];
  if (name === undefined) throw new Error(`apt knows no ${META_PACKAGE}`);
  run('apt-get', ['download', '-q', name], draft);
  const archive = readdirSync(draft).find((file) => file.endsWith('.deb'));
  run('dpkg-deb', ['-x', archive, 'files'], draft);
  const out = join(draft, 'out');
  mkdirSync(out);
  for (const file of filesUnder(join(draft, 'files'))) {
    if (/\/boot\/vmlinuz-/.test(file)) copyFileSync(file, join(out, 'vmlinuz'));
    else if (MODULES.test(file)) copyFileSync(file, join(out, basename(file)));
  }
  for (const file of readdirSync(out)) if (file.endsWith('.xz')) run('xz', ['-d', file], out);
  if (!existsSync(join(out, 'vmlinuz'))) throw new Error(`no kernel in ${archive}`);
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  rmSync(FOLDER, { recursive: true, force: true });
  renameSync(out, FOLDER);
}

/** Brings the kernel where it is missing and may be had; returns why there is none, or ''. */
export function bringGuestKernel() {
  if (existsSync(join(FOLDER, 'vmlinuz'))) return '';
  if (process.arch !== 'x64') return `the kernel for the virtual machine is for x64, this is ${process.arch}`;
  if (!hasCommand('qemu-system-x86_64')) return 'no qemu-system-x86_64 to run a kernel';
  if (!hasCommand('apt-get') || !hasCommand('dpkg-deb')) return 'no apt-get to bring a kernel for the virtual machine';
  // Beside its place, so that it can be renamed into it.
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const draft = mkdtempSync(join(ROOT, '.cache', 'guest-kernel-'));
  try {
    console.log(`> Bringing a kernel for the virtual machine (apt-get download, into .cache)`);
    fetchInto(draft);
    return '';
  } catch (error) {
    return `no kernel for the virtual machine: ${error.message}`;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
