import { describe, expect, it } from 'vitest';
import { manifestOf, parseManifest } from './aof-manifest.js';

describe('the manifest of an append-only file', () => {
  it('tells the files in reading order', () => {
    const text = `# a note
file appendonly.aof.2.base.rdb seq 2 type b
file appendonly.aof.3.incr.aof seq 3 type h
file "with \\"quotes\\" and \\x41.4.incr.aof" seq 4 type i
file appendonly.aof.5.incr.aof seq 5 type i startoffset 7
`;
    expect(parseManifest(text)).toEqual({
      base: { name: 'appendonly.aof.2.base.rdb', sequence: 2 },
      increments: [
        { name: 'with "quotes" and A.4.incr.aof', sequence: 4 },
        { name: 'appendonly.aof.5.incr.aof', sequence: 5 },
      ],
      history: [{ name: 'appendonly.aof.3.incr.aof', sequence: 3 }],
    });
  });

  it.each(['plain.1.base.rdb', 'with blanks.1.base.rdb', 'a"b\\c.1.base.rdb'])('written for %j says it', (name) => {
    expect(parseManifest(manifestOf({ name, sequence: 1 }))).toEqual({
      base: { name, sequence: 1 },
      increments: [],
      history: [],
    });
  });

  it.each([
    ['', 'it is an empty manifest'],
    ['file a seq 1 type b\n\n', 'line 2 is none of a manifest'],
    ['file a seq 1', 'line 1 is none'],
    ['file a seq 0 type i', 'line 1 is none'],
    ['file a seq 1 type x', 'line 1 is none'],
    ['file "a seq 1 type b', 'line 1 is none'],
    ['file /etc/passwd seq 1 type b', 'line 1 names a file that lies elsewhere'],
    ['file a seq 1 type b\nfile b seq 2 type b', 'line 2 is a second base'],
    ['file a seq 2 type i\nfile b seq 1 type i', 'line 2 is out of order'],
  ])('%j is refused', (text, reason) => {
    expect(() => parseManifest(text)).toThrow(reason);
  });
});
