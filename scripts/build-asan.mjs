/**
 * `npm run build:native:asan`: builds the addon with the address and undefined-behaviour sanitizers into
 * native/addon/build-asan, beside the ordinary build. node-gyp builds where binding.gyp lies, so the sources are copied there.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const addon = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../native/addon');
const target = path.join(addon, 'build-asan');
fs.mkdirSync(target, { recursive: true });
for (const name of fs.readdirSync(addon)) {
  if (!/\.(c|h|gyp|sh)$/.test(name)) continue;
  const from = path.join(addon, name);
  const to = path.join(target, name);
  fs.copyFileSync(from, to);
  const { atime, mtime } = fs.statSync(from);
  fs.utimesSync(to, atime, mtime);
}
// configure keeps what is built: a second run compiles only what has changed.
for (const step of [
  ['configure', '--entresol_sanitize=true'],
  ['build', '--jobs', 'max'],
]) {
  const { status } = spawnSync('node-gyp', [...step, '-C', target], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
