import { expect, test } from 'vitest';
import { Counter, CounterRow, createCounterBlock, SharedWord } from '../layout/counters.js';
import { Closing, type Driver, type DriverClient } from '../protocol/driver.js';
import { Connections } from './connections.js';

function clientWith(id: number, conn: number): DriverClient {
  return {
    id,
    conn,
    again: false,
    suspended: false,
    closing: Closing.NO,
    intoArena: 0,
    intoOffset: 0,
    intoLength: 0,
    heapBytes: 0,
    parkedBytes: 0,
    noEvict: false,
  };
}

class CountingDriver implements Driver {
  readonly closedIds: number[] = [];
  open(id: number, conn: number): DriverClient {
    return clientWith(id, conn);
  }
  feed(): number {
    return 0;
  }
  answersShutOut(): boolean {
    return true;
  }
  consumedByNow(): number {
    return 0;
  }

  resumeInto(): void {}
  closed(client: DriverClient): void {
    this.closedIds.push(client.id);
  }
  datagram(): void {}
  describe(): ReturnType<Driver['describe']> {
    throw new Error('not asked here');
  }
  matches(): boolean {
    return true;
  }
  mayStay(): boolean {
    return true;
  }

  isOpen(): boolean {
    return false;
  }

  refusal(): string {
    return '';
  }
}

test('a client leaves once, and its slot serves the next', () => {
  const counters = new CounterRow(createCounterBlock(1), 0);
  const connections = new Connections(counters);
  const driver = new CountingDriver();
  for (const conn of [0, 3, 700]) {
    expect(connections.admit(10)).toBe(true);
    connections.add(conn, driver.open(connections.nextClientId(), conn), driver, 0, 1000);
  }
  expect(counters.values[Counter.connections]).toBe(3);
  expect(connections.at(700)!.id).toBe(3);
  expect(connections.openedAtMs[700]).toBe(1000);

  connections.remove(3);
  connections.remove(3);
  expect(driver.closedIds).toEqual([2]);
  expect(connections.at(3)).toBeNull();
  expect(Atomics.load(counters.shared, SharedWord.connections)).toBe(2);

  expect(connections.admit(10)).toBe(true);
  connections.add(3, driver.open(connections.nextClientId(), 3), driver, 0, 2000);
  expect(connections.withId(3, 2)).toBeNull();
  expect(connections.withId(3, 4)).not.toBeNull();
  expect(connections.at(5000)).toBeNull();
});

test('maxclients counts the connections of all workers', () => {
  const block = createCounterBlock(2);
  const first = new Connections(new CounterRow(block, 0));
  const second = new Connections(new CounterRow(block, 1));
  expect(first.admit(2)).toBe(true);
  expect(second.admit(2)).toBe(true);
  expect(second.admit(2)).toBe(false);
  expect(first.admit(3)).toBe(true);
});
