/**
 * A virtual machine whose disk is persistent memory: ext4 with DAX on a range of its RAM, which is a file here. Killing the machine
 * is the power cut; the next one boots from the same RAM file and finds what the range holds.
 *
 * What this shows and what not: mapping with MAP_SYNC, the flush instructions and the file system's metadata are real; but RAM
 * behind a killed machine keeps stores that were never flushed as well, so a missing flush is not found here.
 *
 * Its first file system carries Node.js, this build, busybox and their libraries. The processor is emulated everywhere: a /dev/kvm that is
 * there and does not work (in a virtual machine) would hang the guest without a word.
 * Invariant: close() leaves no process and no file.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CpioWriter } from './cpio.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KERNEL = join(ROOT, '.cache/guest-kernel');
/** In the order of their loading. */
const MODULES = ['libnvdimm', 'nd_e820', 'nd_btt', 'nd_pmem'];

/** The range lies below the end of the RAM, where the first file system is put. */
const RAM_MIB = 1280;
const PMEM_AT_MIB = 768;
const PMEM_MIB = 192;

const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /tmp /mnt; mount -t tmpfs shm /dev/shm; mount -t tmpfs tmp /tmp
${MODULES.map((name) => `insmod /modules/${name}.ko`).join('; ')}
for i in $(seq 100); do [ -b /dev/pmem0 ] && break; sleep 0.1; done
mount -t ext4 -o dax=always /dev/pmem0 /mnt || { echo GUEST-FAILED mount; poweroff -f; }
for word in $(cat /proc/cmdline); do case $word in guest=*) what=\${word#guest=};; esac; done
cd /entresol
echo GUEST-BEGINS
node test/devices/dax-guest.mjs $what
echo GUEST-ENDED $?
poweroff -f
`;

/** Why no such machine can run here, or ''. */
export function obstacle(): string {
  if (process.arch !== 'x64') return `the guest is built for x64, this is ${process.arch}`;
  for (const program of ['qemu-system-x86_64', 'busybox', 'mkfs.ext4']) {
    const path = `${process.env.PATH}:/sbin:/usr/sbin`;
    const found = spawnSync('sh', ['-c', `command -v ${program}`], { env: { ...process.env, PATH: path } });
    if (found.status !== 0) return `no ${program} here`;
  }
  if (!existsSync(join(KERNEL, 'vmlinuz'))) return 'no kernel in .cache/guest-kernel; npm test brings one';
  return '';
}

/** The program and the libraries that it is linked with, at the paths where they lie here. */
function addProgram(archive: CpioWriter, name: string, path: string, seen: Set<string>): void {
  archive.copy(name, path);
  const { stdout } = spawnSync('ldd', [path], { encoding: 'utf8' });
  for (const [, library] of stdout.matchAll(/(?:=>\s*)?(\/\S+) \(0x/g)) {
    if (seen.has(library)) continue;
    seen.add(library);
    archive.copy(library.slice(1), library);
  }
}

export interface Guest {
  /** Settles with all output when a line matches; rejects when the machine ends before, or after `withinMs`. */
  waitFor(line: RegExp, withinMs: number): Promise<string>;
  /** The power cut. Settles with all output. */
  kill(): Promise<string>;
  /** Settles with all output when the machine has switched itself off. */
  readonly ended: Promise<string>;
}

export class DaxMachine {
  readonly #folder = mkdtempSync(join(tmpdir(), 'entresol-dax-'));
  readonly #guests = new Set<ChildProcess>();

  constructor() {
    this.#pack();
    const ram = this.#path('ram');
    writeFileSync(ram, '');
    truncateSync(ram, RAM_MIB * 2 ** 20);
    // A file system without lazy initialisation: nothing goes on in the background of a guest that lives for seconds.
    const options = [
      '-q',
      '-F',
      '-b',
      '4096',
      '-E',
      `offset=${PMEM_AT_MIB * 2 ** 20},lazy_itable_init=0,lazy_journal_init=0`,
    ];
    execFileSync('mkfs.ext4', [...options, ram, `${PMEM_MIB}M`], {
      env: { ...process.env, PATH: `${process.env.PATH}:/sbin:/usr/sbin` },
      stdio: 'pipe',
    });
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #pack(): void {
    const archive = new CpioWriter(this.#path('initrd'));
    const libraries = new Set<string>();
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
    const addon = 'native/addon/build/Release/entresol.node';
    addProgram(archive, 'bin/busybox', busybox, libraries);
    addProgram(archive, 'bin/node', process.execPath, libraries);
    addProgram(archive, `entresol/${addon}`, join(ROOT, addon), libraries);
    for (const name of MODULES) archive.copy(`modules/${name}.ko`, join(KERNEL, `${name}.ko`));
    archive.copy('entresol/package.json', join(ROOT, 'package.json'));
    archive.copy('entresol/bin/entresol.js', join(ROOT, 'bin/entresol.js'));
    archive.copy('entresol/test/devices/dax-guest.mjs', join(ROOT, 'test/devices/dax-guest.mjs'));
    archive.tree('entresol/node_modules/smol-toml', join(ROOT, 'node_modules/smol-toml'), () => true);
    archive.tree('entresol/dist', join(ROOT, 'dist'), (path) => path.endsWith('.js') || path.endsWith('package.json'));
    for (const folder of ['proc', 'sys', 'dev']) archive.folder(folder);
    archive.file('init', INIT);
    archive.close();
  }

  /** Boots; `what` is what dax-guest.mjs shall do. */
  boot(what: string): Guest {
    const memory = `memory-backend-file,id=ram,share=on,mem-path=${this.#path('ram')},size=${RAM_MIB}M`;
    const child = spawn(
      'qemu-system-x86_64',
      [
        ...['-accel', 'tcg', '-cpu', 'max', '-machine', 'q35,memory-backend=ram', '-m', `${RAM_MIB}M`],
        ...[
          '-object',
          memory,
          '-display',
          'none',
          '-serial',
          'stdio',
          '-monitor',
          'none',
          '-nic',
          'none',
          '-no-reboot',
        ],
        ...['-kernel', join(KERNEL, 'vmlinuz'), '-initrd', this.#path('initrd'), '-append'],
        `console=ttyS0 quiet panic=-1 memmap=${PMEM_MIB}M!${PMEM_AT_MIB}M guest=${what}`,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#guests.add(child);
    let printed = '';
    const ended = new Promise<string>((resolve) => {
      child.on('close', () => {
        this.#guests.delete(child);
        resolve(printed);
      });
    });
    const onOutput = (text: string): void => {
      printed += text.replaceAll('\r', '');
      child.emit('printed');
    };
    child.stdout.setEncoding('utf8').on('data', onOutput);
    child.stderr.setEncoding('utf8').on('data', onOutput);
    return {
      ended,
      waitFor: (line, withinMs) =>
        new Promise((resolve, reject) => {
          const timer = setTimeout(
            () => reject(new Error(`${line} did not come within ${withinMs} ms:\n${printed}`)),
            withinMs,
          );
          const look = (): void => {
            if (!line.test(printed)) return;
            clearTimeout(timer);
            resolve(printed);
          };
          child.on('printed', look);
          void ended.then(() => {
            clearTimeout(timer);
            reject(new Error(`the machine ended without ${line}:\n${printed}`));
          });
          look();
        }),
      kill: () => {
        child.kill('SIGKILL');
        return ended;
      },
    };
  }

  async close(): Promise<void> {
    for (const child of this.#guests) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((resolve) => child.once('close', resolve));
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
