/** A configuration that cannot be used: every problem found, one line each, in the words the user needs. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'ERR_CONFIG';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
