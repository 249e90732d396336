/**
 * npm start: from a fresh clone to a running server. Arguments after -- go to `entresol serve`.
 * The server runs in this process, so signals reach it directly.
 */
import { join } from 'node:path';
import { build, checkPlatform, installDependencies, PrepareError, ROOT } from './prepare.mjs';

try {
  checkPlatform();
  installDependencies();
  build();
} catch (error) {
  if (!(error instanceof PrepareError)) throw error;
  console.error(`npm start: ${error.message}`);
  process.exit(1);
}
const entry = join(ROOT, 'bin/entresol.js');
process.argv = [process.argv[0], entry, 'serve', ...process.argv.slice(2)];
await import(entry);
