/**
 * Declarations of command arguments, as COMMAND DOCS reports them. Documentation only: parsing is the handlers' business.
 */

export type ArgumentType =
  | 'string'
  | 'integer'
  | 'double'
  | 'key'
  | 'pattern'
  | 'unix-time'
  | 'pure-token'
  | 'oneof'
  | 'block';

export interface ArgumentSpec {
  readonly name: string;
  readonly type: ArgumentType;
  readonly token?: string;
  /** For keys: index of its KeySpec. */
  readonly keySpec?: number;
  readonly optional?: true;
  readonly multiple?: true;
  readonly multipleToken?: true;
  readonly since?: string;
  readonly args?: readonly ArgumentSpec[];
}

type Options = Omit<ArgumentSpec, 'name' | 'type' | 'args'>;

export const stringArg = (name: string, options?: Options): ArgumentSpec => ({ name, type: 'string', ...options });
export const integerArg = (name: string, options?: Options): ArgumentSpec => ({ name, type: 'integer', ...options });
export const doubleArg = (name: string, options?: Options): ArgumentSpec => ({ name, type: 'double', ...options });
export const patternArg = (name: string, options?: Options): ArgumentSpec => ({ name, type: 'pattern', ...options });
export const unixTimeArg = (name: string, options?: Options): ArgumentSpec => ({ name, type: 'unix-time', ...options });
export const keyArg = (name: string, options?: Options): ArgumentSpec => ({
  name,
  type: 'key',
  keySpec: 0,
  ...options,
});
/** A word alone: NX, KEEPTTL. */
export const tokenArg = (token: string, options?: Options): ArgumentSpec => ({
  name: token.toLowerCase(),
  type: 'pure-token',
  token,
  ...options,
});
export const oneOf = (name: string, args: readonly ArgumentSpec[], options?: Options): ArgumentSpec => ({
  name,
  type: 'oneof',
  args,
  ...options,
});
export const blockArg = (name: string, args: readonly ArgumentSpec[], options?: Options): ArgumentSpec => ({
  name,
  type: 'block',
  args,
  ...options,
});
/** The same argument, optional. */
export const optional = (argument: ArgumentSpec): ArgumentSpec => ({ ...argument, optional: true });
