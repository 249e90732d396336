/** What a test server's process tells its parent: one line of JSON when it serves, or why it does not. */
export interface Place {
  readonly port: number;
  readonly memcachedPort: number;
  /** Where its data is, for whoever cleans up after it. */
  readonly pool: string;
  readonly dramPath: string;
}

export type Report = { readonly ready: Place } | { readonly failed: string };
