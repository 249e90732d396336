/**
 * The machines that a release serves: what each prebuilt addon is called and what compiles it.
 *
 * One table; everything else about a target follows from it. A target's name is what src/native/find-addon.ts looks for:
 * linux-ARCH-LIBC.
 */

/** @typedef {{ name: string, arch: 'x64' | 'arm64', libc: 'glibc' | 'musl', triplet: string, compiler: string, packages: string[] }} Target */

/** The oldest glibc that Node.js 20 itself runs on. */
export const GLIBC_MAX = '2.28';

/** As Debian calls them. */
export const DEBIAN_ARCH = { x64: 'amd64', arm64: 'arm64' };

const TRIPLETS = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };

/** @returns {Target} */
function target(arch, libc) {
  const triplet = TRIPLETS[arch];
  const isHost = arch === process.arch;
  return {
    name: `linux-${arch}-${libc}`,
    arch,
    libc,
    triplet,
    compiler: isHost ? 'gcc' : `${triplet}-gcc`,
    // Debian's names, for the message when something is missing: the compiler only recommends its C library.
    packages: isHost
      ? ['gcc', 'libc6-dev']
      : [`gcc-${triplet.replace('x86_64', 'x86-64')}`, `libc6-dev-${DEBIAN_ARCH[arch]}-cross`],
  };
}

export const TARGETS = [
  target('x64', 'glibc'),
  target('x64', 'musl'),
  target('arm64', 'glibc'),
  target('arm64', 'musl'),
];

export function targetNamed(name) {
  const found = TARGETS.find((each) => each.name === name);
  if (found === undefined)
    throw new Error(`${name}: no such target; there are ${TARGETS.map((t) => t.name).join(', ')}`);
  return found;
}
