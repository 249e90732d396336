/**
 * One user of the library in a thread or process of its own: asks for a key when told to, and reports what it got. Each computation adds
 * a line to a file that all share. Runs from dist/.
 */
import { appendFileSync } from 'node:fs';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { open } from '../../dist/embed/index.js';

const { path, log, name } = isMainThread ? JSON.parse(process.argv[2]) : workerData;
const cache = await open({ path });

function report(message) {
  if (isMainThread) process.send(message);
  else parentPort.postMessage(message);
}

/** `takesMs` -1: the computation never ends. */
async function ask({ key, callers, takesMs, options }) {
  const compute = async () => {
    appendFileSync(log, `${name} ${key}\n`);
    report({ computing: key });
    await new Promise((resolve) => {
      if (takesMs >= 0) setTimeout(resolve, takesMs);
    });
    return `by ${name}`;
  };
  const asked = Array.from({ length: callers }, () => cache.getOrCompute(key, compute, options));
  report({ answers: await Promise.all(asked) });
}

(isMainThread ? process : parentPort).on('message', (message) => {
  ask(message).catch((error) => report({ error: error.message }));
});
report({ ready: true });
