/**
 * Entry of a test server's process: lets the worker thread begin to load, which takes longest, then loads the rest, with what earlier starts have
 * compiled of it.
 */
import { prepareThread } from '../server/prepare-thread.js';

const thread = prepareThread(0);
void import('../server/compile-cache.js')
  .then(({ keepCompiled }) => {
    keepCompiled();
    return import('./child.js');
  })
  .then(({ runChild }) => runChild(thread));
