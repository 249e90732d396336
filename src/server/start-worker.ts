/** Entry of a worker thread: loads the worker, with what earlier starts have compiled of it. */
import { keepCompiled } from './compile-cache.js';

keepCompiled();
void import('./worker.js');
