#!/usr/bin/env node
/**
 * Entry of the command. Plain old JavaScript, so that an old Node.js gets a message and not a syntax error.
 * All else is in src/cli.
 */
const major = Number(process.versions.node.split('.')[0]);
if (major < 20) {
  console.error(`entresol needs Node.js 20 or newer; this is ${process.version}.`);
  process.exit(1);
}
if (process.platform !== 'linux' || (process.arch !== 'x64' && process.arch !== 'arm64')) {
  console.error(
    `entresol runs on Linux on x64 and arm64; this is ${process.platform} on ${process.arch}.` +
      ' Elsewhere, run it in a Linux virtual machine or container.',
  );
  process.exit(1);
}

import('../dist/cjs/start.js')
  .then((cli) => cli.run(process.argv.slice(2)))
  .then(
    (exitCode) => {
      process.exitCode = exitCode;
    },
    (error) => {
      const isMissing = error.code === 'ERR_MODULE_NOT_FOUND';
      if (isMissing) console.error(`entresol: not built yet: run npm ci && npm run build (${error.message})`);
      else console.error(error);
      process.exitCode = 1;
    },
  );
