import { expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';

it('EXEC has not failed with the commands in it', () => {
  const session = new Session(testStore());
  session.send('SET k v');
  for (const request of ['MULTI', 'INCR k', 'GET k', 'EXEC']) session.send(request);
  const info = session.send('INFO commandstats');
  expect(info).toMatch(/cmdstat_incr:calls=1,.*rejected_calls=0,failed_calls=1/);
  expect(info).toMatch(/cmdstat_exec:calls=1,.*rejected_calls=0,failed_calls=0/);
  session.send('EXEC');
  expect(session.send('INFO commandstats')).toMatch(/cmdstat_exec:calls=2,.*failed_calls=1/);
});
