/** Entry of the thread that a test server's control plane runs in: see control.ts. */
import { keepCompiled, saveCompiled } from '../server/compile-cache.js';

keepCompiled();
void import('./control.js').then(({ runControl }) => {
  runControl();
  saveCompiled();
});
