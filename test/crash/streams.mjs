/** What the crash tests' writer does to streams: random changes through the store's own doors. Runs from dist/. */
import { Bytes } from '../../dist/layout/bytes.js';
import { StreamGroups } from '../../dist/store/streams/groups.js';
import { PendingEntries } from '../../dist/store/streams/pending.js';
import { Stream } from '../../dist/store/streams/stream.js';
import { StreamId } from '../../dist/store/streams/stream-id.js';

const stream = new Stream();
const groups = new StreamGroups(stream);
const pending = new PendingEntries(stream, groups);
const streamId = new StreamId();

/** Names and values for an entry: mostly the same names, now and then long values. */
function append(random) {
  const words =
    random(4) > 0 ? ['name', 'x'.repeat(random(30)), 'other', 'y'] : [`n${random(50)}`, 'z'.repeat(random(2000))];
  const bytes = Bytes.from(words.join(''));
  const args = new Int32Array(words.length * 2);
  words.forEach((word, i) => {
    args[i * 2] = i === 0 ? 0 : args[i * 2 - 2] + args[i * 2 - 1];
    args[i * 2 + 1] = word.length;
  });
  streamId.set(stream.lastId);
  if (streamId.increment()) stream.append(streamId, bytes, args, 0, words.length / 2);
}

/** Gives a consumer of a group what is new to it. */
function deliver(nowMs, random) {
  const [group, consumer] = [Bytes.from(`group ${random(3)}`), Bytes.from(`consumer ${random(3)}`)];
  if (!groups.find(group, 0, group.length) && groups.create(new StreamId(), -1) !== 0) return;
  if (!groups.findConsumer(consumer, 0, consumer.length) && groups.createConsumer(nowMs) !== 0) return;
  streamId.set(groups.lastId);
  if (!streamId.increment()) return;
  let more = stream.seek(streamId);
  for (let i = random(30); more && i > 0; i--, more = stream.next()) {
    stream.loadId();
    if (!pending.find(stream.id) && pending.add(stream.id, groups.consumer, nowMs, 1) !== 0) break;
    groups.lastId.set(stream.id);
  }
  groups.save();
  groups.saveConsumer();
}

/** Something happens to what is pending in a group. */
function settlePending(random) {
  const { count } = groups;
  if (count === 0) return;
  groups.loadGroup(random(count));
  const { consumerCount } = groups;
  if (consumerCount === 0) {
    groups.remove();
    return;
  }
  groups.loadConsumer(random(consumerCount));
  if (random(20) === 0) {
    pending.removeOwned(groups.consumer);
    groups.removeConsumer();
    return;
  }
  for (let i = random(20); i > 0 && pending.seek(new StreamId()); i--) {
    if (random(3) > 0) pending.remove();
    else if (pending.save(groups.consumer) !== 0) return;
  }
}

/** Some changes to a stream that is open, its groups and what is pending in them. */
export function touchStream(c, nowMs, random) {
  stream.open(c);
  for (let i = random(30); i >= 0; i--) {
    const kind = !c.exists ? 0 : c.count > 600 ? 19 : random(20);
    if (kind < 12) {
      append(random);
    } else if (kind < 14) {
      deliver(nowMs, random);
    } else if (kind < 16) {
      settlePending(random);
    } else if (kind < 19 && c.count > 0) {
      c.seekRank(random(c.count));
      stream.loadId();
      streamId.set(stream.id);
      if (stream.delete(streamId)) stream.save();
    } else {
      stream.removeFirst(Math.min(c.count, random(c.count > 600 ? 400 : 10)));
    }
  }
}
