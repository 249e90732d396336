/**
 * What compiles for musl: musl's headers and library from Debian's packages, the kernel's headers, and the compiler that is
 * there for glibc, told by a specs file to use them and nothing else.
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackDebian } from './debian.mjs';
import { DEBIAN_ARCH } from './targets.mjs';

/** Makes the tools in `folder`; returns { flags, library }: flags for every compiler call, and the path of musl's libc.so. */
export function makeMusl(target, cache, folder) {
  const arch = DEBIAN_ARCH[target.arch];
  const musl = target.triplet.replace('-gnu', '-musl');
  const root = unpackDebian([`musl:${arch}`, `musl-dev:${arch}`, `linux-libc-dev:${arch}`], join(cache, musl));

  // Only the kernel's own headers: the rest of /usr/include is glibc's.
  const kernel = join(folder, 'kernel');
  mkdirSync(kernel, { recursive: true });
  const headers = { linux: 'linux', 'asm-generic': 'asm-generic', asm: `${target.triplet}/asm` };
  for (const [name, path] of Object.entries(headers)) {
    if (!existsSync(join(kernel, name))) symlinkSync(join(root, 'usr/include', path), join(kernel, name));
  }

  const library = join(root, 'usr/lib', musl);
  const specs = join(folder, 'musl.specs');
  const include = `-nostdinc -isystem ${join(root, 'usr/include', musl)} -isystem ${kernel} -isystem include%s`;
  writeFileSync(
    specs,
    [
      `*cpp_options:\n${include} %{pthread:-D_REENTRANT}`,
      `*cc1:\n%(cc1_cpu) ${include}`,
      `*startfile:\n${library}/crti.o crtbeginS.o%s`,
      `*endfile:\ncrtendS.o%s ${library}/crtn.o`,
      // libc.so is in the one, the empty libm and its like in the other.
      `*link_libgcc:\n-L${join(root, 'lib', musl)} -L${library}`,
      '*lib:\n-lc',
      '*libgcc:\nlibgcc.a%s %:if-exists(libgcc_eh.a%s)',
      '',
    ].join('\n\n'),
  );
  // GCC's own atomics for arm64 ask glibc what the processor can do.
  const atomics = target.arch === 'arm64' ? ' -mno-outline-atomics' : '';
  return { flags: `-specs=${specs}${atomics}`, library: join(root, 'lib', musl, 'libc.so') };
}
