/** Entry of a test server's process: loads it, with what earlier starts have compiled of it. */
import { keepCompiled } from '../server/compile-cache.js';

keepCompiled();
void import('./child.js').then(({ runChild }) => runChild());
