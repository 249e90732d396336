/** Exit codes: 0 = done, or stopped by a signal. */

/** Could not start, or failed while running. */
export const EXIT_FAILURE = 1;
/** Wrong usage or configuration. */
export const EXIT_USAGE = 2;
/** A second Ctrl-C, as a shell reports a process ended by signal 2. */
export const EXIT_INTERRUPTED = 130;
