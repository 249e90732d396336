import { describe, expect, it } from 'vitest';
import { openParticipants } from '../../test/helpers/participants.js';
import { Bytes } from '../layout/bytes.js';
import { Mailbox, Message, MessageKind } from '../layout/mailbox.js';
import type { Mailboxes } from './mailboxes.js';

const [one, two, three] = openParticipants(3).map((participant) => participant.keyspace);
for (const { mailboxes } of [one, two, three]) mailboxes.open(-1);
const EMPTY = Bytes.allocate(0);

function send(from: Mailboxes, to: number, a: number, length: number): boolean {
  const body = Bytes.allocate(length);
  body.u8.fill(a & 0xff);
  return from.send(to, MessageKind.MONITOR, a, 0, body, 0, length, EMPTY, 0, 0);
}

/** What has arrived: sender, number and length of each message; its content is checked. */
function receive(mailboxes: Mailboxes): string[] {
  const got: string[] = [];
  mailboxes.drainRing((record, at) => {
    const word = at >>> 2;
    const length = record.i32[word + Message.LENGTH_A_WORD];
    const number = record.i32[word + Message.A_WORD];
    const body = record.u8.subarray(at + Message.HEADER_BYTES, at + Message.HEADER_BYTES + length);
    expect(body.every((byte) => byte === (number & 0xff))).toBe(true);
    got.push(`${(record.i32[word + Message.KIND_WORD] >>> 8) & 0xff}:${number}:${length}`);
  });
  return got;
}

describe('mailboxes', () => {
  it('carry messages of any length from several senders, each in order, round and round the ring', () => {
    let seed = 7;
    const random = (limit: number): number => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return Math.floor((seed / 0x80000000) * limit);
    };
    const sent: string[][] = [[], []];
    const got: string[] = [];
    const senders = [two, three];
    for (let i = 0; i < 6000; i++) {
      const from = random(2);
      const length = random(50) === 0 ? random(300_000) : random(2000);
      send(senders[from].mailboxes, one.memory.self, i, length);
      sent[from].push(`${senders[from].memory.self}:${i}:${length}`);
      if (random(40) === 0) got.push(...receive(one.mailboxes));
      for (const { mailboxes } of senders) mailboxes.flush();
    }
    while (two.mailboxes.hasBacklog || three.mailboxes.hasBacklog) {
      got.push(...receive(one.mailboxes));
      for (const { mailboxes } of senders) mailboxes.flush();
    }
    got.push(...receive(one.mailboxes));
    senders.forEach(({ memory }, i) => {
      expect(got.filter((message) => message.startsWith(`${memory.self}:`))).toEqual(sent[i]);
    });
    expect(one.mailboxes.takeLost()).toBe(false);
  });

  it('drop what a receiver does not take, tell it so, and never wait for it', () => {
    let refused = 0;
    for (let i = 0; i < 80; i++) if (!send(two.mailboxes, one.memory.self, i, 1_000_000)) refused++;
    expect(refused).toBeGreaterThan(0);
    expect(one.mailboxes.takeLost()).toBe(true);
    expect(one.mailboxes.takeLost()).toBe(false);
    while (two.mailboxes.hasBacklog) {
      receive(one.mailboxes);
      two.mailboxes.flush();
    }
    receive(one.mailboxes);
    expect(send(two.mailboxes, one.memory.self, 1, 10)).toBe(true);
    expect(receive(one.mailboxes)).toEqual([`${two.memory.self}:1:10`]);
  });

  it('are no place to send to for who has none', () => {
    expect(send(two.mailboxes, 100, 1, 10)).toBe(false);
    expect(send(two.mailboxes, 100, 1, 1_000_000)).toBe(false);
    expect(two.mailboxes.hasBacklog).toBe(false);
  });

  it('keep a sender from being forgotten while it sleeps', () => {
    expect(one.mailboxes.sleep()).toBe(true);
    send(two.mailboxes, one.memory.self, 3, 10);
    expect(one.mailboxes.sleep()).toBe(false);
    one.mailboxes.awake();
    receive(one.mailboxes);
  });

  it('have the layout that their description shows', () => {
    const [channel, body] = [Bytes.from('ch'), Bytes.from('hello')];
    two.mailboxes.send(one.memory.self, MessageKind.MESSAGE, 5, 0, channel, 0, 2, body, 0, 5);
    let hex = '';
    one.mailboxes.drainRing((record, at) => {
      hex = Buffer.from(record.u8.subarray(at, at + 31)).toString('hex');
    });
    const sender = two.memory.self.toString(16).padStart(2, '0');
    expect(hex).toBe(`2000000002${sender}000005000000000000000200000005000000636868656c6c6f`);
    expect(Mailbox.RING_BYTES % 8).toBe(0);
  });
});
