/**
 * Leaves as much as it can to the clean-up hooks: a pump with listeners, half a request, a large one, queued replies, and a
 * worker that is terminated with the same. Run under the leak sanitizer by sanitizer.test.ts; prints 'done'.
 */
const net = require('node:net');
const { Worker, isMainThread, parentPort } = require('node:worker_threads');

const addon = require(process.env.ENTRESOL_ADDON);
const pump = addon.createPump({ inputBytes: 1 << 20, outputBytes: 1 << 20, maxEvents: 64, receiveBytes: 65536 });
pump.setGlobalLimits(100, 1 << 26, new Uint8Array([45]));
const port = pump.listenerPort(pump.listenTcp('127.0.0.1', 0, 16, 0));
pump.listenUdp('127.0.0.1', 0, 0);
addon.copyControl();
addon.closeAtExit(addon.openMemory('leaks'));
addon.openEvent();
addon.wrapArena(addon.allocateArena(4096, {}));

function fill(done) {
  const small = net.connect(port, '127.0.0.1', () => small.write('half a request'));
  const large = net.connect(port, '127.0.0.1', () => large.write(Buffer.alloc(1_000_000)));
  for (const socket of [small, large]) socket.on('error', () => {}).unref();
  const sends = new Int32Array(pump.sends);
  let turns = 0;
  const timer = setInterval(() => {
    let sendCount = 0;
    if (turns > 20) {
      for (let conn = 0; conn < 2; conn++) sends.set([conn, -1, 0, 1 << 20, 0], 5 * sendCount++);
    }
    pump.poll(sendCount, 0);
    if (++turns < 40) return;
    clearInterval(timer);
    done();
    small.destroy();
    large.destroy();
  }, 2);
}

if (isMainThread) {
  fill(() => {
    const worker = new Worker(__filename);
    worker.on('message', async () => {
      await worker.terminate();
      console.log('done', pump.heldBytes() > 0);
    });
  });
} else {
  fill(() => {
    parentPort.postMessage('filled');
    for (;;) pump.poll(0, -1);
  });
}
