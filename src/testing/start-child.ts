/** Entry of a test server's process: lets the worker thread begin to load, then loads the rest, with what earlier starts have compiled of it. */
import { keepCompiled } from '../server/compile-cache.js';
import { prepareThread } from '../server/prepare-thread.js';

const thread = prepareThread(0);
keepCompiled();
void import('./child.js').then(({ runChild }) => runChild(thread));
