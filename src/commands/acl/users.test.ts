import { describe, expect, it } from 'vitest';
import { createCommandTable } from '../families.js';
import { Users } from './users.js';

const table = createCommandTable();

/** What GETUSER shows as `commands` after these rules, given to ACL SETUSER one call after the other. */
function commandsAfter(...calls: string[]): string {
  const users = new Users(table);
  for (const call of calls) {
    const change = users.setUser('u', call.split(' '), false);
    if (typeof change === 'string') throw new Error(change);
  }
  return users.get('u')!.selectors[0].describeCommands();
}

describe('rules about commands are kept as Redis 7.2 keeps them', () => {
  it.each([
    [['+@all -@string -@slow +get'], '+@all -@string -@slow +get'],
    [['+@all -@string -@slow +get', '-@string'], '+@all -@slow +get -@string'],
    [['+@all -@string -@slow +get', '+@string'], '+@all -@slow +get +@string'],
    [['-@string -@slow +@all'], '+@all'],
    [['-@all +@STRING +@string +@StRiNg'], '-@all +@string'],
    [['-@all +GET +get +gEt'], '-@all +get'],
    [['-@all +get -set +set -get'], '-@all +set -get'],
    [['-@all +client|list +client|list +config|get +config +acl|list -acl'], '-@all +client|list +config -acl'],
    [['-@all +select|0 +select|0 +debug|segfault +debug'], '-@all +select|0 +debug'],
    [['-@all -@dangerous'], '-@all -@dangerous'],
    [['-@all +config +config|get -config|set +config'], '-@all +config'],
    [['+memory|doctor', '+memory'], '-@all +memory'],
    [['+@all +client|id'], '+@all +client|id'],
  ])('%j', (calls, wanted) => {
    expect(commandsAfter(...calls)).toBe(wanted);
  });
});

describe('users as text', () => {
  it('makes an equal user again', () => {
    const users = new Users(table);
    const rules =
      'on >secret >other ~a* %R~b %W~c resetchannels &x &y +@all -@dangerous +config|get +select|0 (~d +get) (%RW~e +set &z)';
    users.setUser('u', rules.split(' '), false);
    const copy = new Users(table);
    copy.applied({ removed: [], set: [['u', users.get('u')!.describe()]] });
    expect(copy.get('u')!.describe()).toBe(users.get('u')!.describe());
    expect(copy.get('u')!.selectors.map((selector) => [...selector.allowed])).toEqual(
      users.get('u')!.selectors.map((selector) => [...selector.allowed]),
    );
    expect(copy.get('u')!.accepts(Buffer.from('other'))).toBe(true);
    expect(copy.get('u')!.accepts(Buffer.from('wrong'))).toBe(false);
  });

  it('a rule that is refused leaves the user as it was', () => {
    const users = new Users(table);
    users.setUser('u', ['on', '+get'], false);
    const before = users.get('u')!.describe();
    const { epoch } = users;
    expect(users.setUser('u', ['off', '-get', '+nosuch'], false)).toContain('Unknown command');
    expect(users.get('u')!.describe()).toBe(before);
    expect(users.epoch).toBe(epoch);
  });

  it('new users have the channels of acl-pubsub-default', () => {
    const users = new Users(table);
    users.setUser('all', [], true);
    users.setUser('none', [], false);
    expect(users.get('all')!.describe()).toBe('off sanitize-payload &* -@all');
    expect(users.get('none')!.describe()).toBe('off sanitize-payload resetchannels -@all');
  });
});

describe('an ACL file', () => {
  it('replaces all users', () => {
    const users = new Users(table);
    users.setUser('old', ['on'], false);
    const change = users.loadFile('user a on +get ~x\n\nuser b off (+set ~y)\n', 'f', false);
    expect(change).toMatchObject({ removed: ['old'] });
    expect(users.lines()).toEqual([
      'a on sanitize-payload ~x resetchannels -@all +get',
      'b off sanitize-payload resetchannels -@all (~y resetchannels -@all +set)',
      'default on nopass sanitize-payload ~* &* +@all',
    ]);
  });

  it('with mistakes changes nothing and names them all', () => {
    const users = new Users(table);
    const before = users.lines();
    const text = 'user a +nosuch >ok #bad\nuser a on\nnobody\nuser b (+get';
    expect(users.loadFile(text, 'f', false)).toBe(
      "f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. " +
        'f:1: The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters. ' +
        "WARNING: Duplicate user 'a' found on line 2. " +
        'f:3 should start with user keyword followed by the username. ' +
        'f:4: Unmatched parenthesis in selector definition.' +
        'WARNING: ACL errors detected, no change to the previously active ACL rules was performed',
    );
    expect(users.lines()).toEqual(before);
  });
});
