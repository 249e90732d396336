/**
 * npm run docs: generates the reference and renders docs/ to build/docs, a folder of static pages.
 * `npm run docs -- dev` serves them while they are written.
 */
import { join } from 'node:path';
import { ROOT, runStep } from '../prepare.mjs';
import { writeReference } from './generate.mjs';

await writeReference();
const command = process.argv[2] ?? 'build';
runStep(`vitepress ${command}`, process.execPath, [
  join(ROOT, 'node_modules/vitepress/bin/vitepress.js'),
  command,
  'docs',
]);
