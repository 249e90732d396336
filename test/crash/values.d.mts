export const OWN_KEYS: number;
export const SHARED_KEYS: number;
export const FIRST_FIELD: number;
export function makeValue(name: string, stamp: number, length: number): Buffer;
export function verify(name: string, u8: Uint8Array, offset: number, length: number): string;
