/**
 * Looking for an element by its key, and putting the new element into a collection: packed, in a tree, or on the way from one to the other.
 *
 * Owns: the element to be written, and with it the member in a sorted set's side tree. Invariant: main and side tree change in one step, or not
 * at all for want of memory.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { Leaf } from '../../layout/node.js';
import { CollectionCut } from './collection-cut.js';
import { Change } from './shapes.js';
import { MEMBER_BYTES, MEMBER_HASH_BYTES, writeMember } from './side-tree.js';

export abstract class CollectionChange extends CollectionCut {
  /** Elements. */
  get count(): number {
    return this.exists ? this.treeCount : 0;
  }

  // ---- searching by key

  /**
   * To the element with this key: hash field, set member, member of a sorted set, stream id. False = there is none; the cursor is then
   * where an insertion of it belongs (by bytes: on the first behind it; in a sorted set anywhere, its score decides).
   */
  seekKey(bytes: Bytes, offset: number, length: number): boolean {
    if (!this.exists) {
      this.aimAt(bytes, offset, length);
      return false;
    }
    if (this.order === Order.BYTES) {
      this.aimAtBytes(bytes, offset, length);
      return this.moveToTarget();
    }
    if (this.isPackedLeaf) {
      this.aimAt(bytes, offset, length);
      return this.scanLeaf();
    }
    const hash = this.keyspace.hash(0, bytes, offset, length);
    if (this.order === Order.SCORE) return this.#seekMemberByHash(hash >>> 0, bytes, offset, length);
    this.aimAtHash(hash, bytes, offset, length);
    return this.moveToTarget();
  }

  #seekMemberByHash(hash: number, bytes: Bytes, offset: number, length: number): boolean {
    const { side, scratch } = this;
    this.isSidePlaced = false;
    this.vacantHash = -1;
    if (side.count === 0) return false;
    scratch.view.setUint32(0, hash, false);
    side.seek(scratch, 0, MEMBER_HASH_BYTES);
    for (let isFirst = true; !side.atEnd; isFirst = false, side.next()) {
      side.load();
      const { view } = side.key;
      if (view.getUint32(side.keyOffset, false) !== hash) {
        if (isFirst) this.vacantHash = hash;
        return false;
      }
      this.aimAtMember(view.getFloat64(side.keyOffset + MEMBER_HASH_BYTES, false), bytes, offset, length);
      if (this.moveToTarget()) {
        this.isSidePlaced = true;
        return true;
      }
    }
    return false;
  }

  /** Sorted sets: to the first element that does not stand before (score, member); true when it is that. */
  seekMember(score: number, bytes: Bytes, offset: number, length: number): boolean {
    if (!this.exists) return false;
    this.aimAtMember(score, bytes, offset, length);
    return this.moveToTarget();
  }

  /** Hash of the key of the element at the position, of a tree ordered by hash. */
  get elementHash(): number {
    return this.leaf.view.getUint32(this.elementOffset(this.slot), true);
  }

  // ---- the new element

  protected setNew(key: Bytes, offset: number, length: number): void {
    if (this.newKey !== key) this.newKey = key;
    this.newKeyOffset = offset;
    this.newKeyLength = length;
    this.newValueLength = 0;
    this.newExpiryMs = 0;
  }

  protected setNewValue(value: Bytes, offset: number, length: number, expiryMs: number): void {
    if (this.newValue !== value) this.newValue = value;
    this.newValueOffset = offset;
    this.newValueLength = length;
    this.newExpiryMs = expiryMs;
  }

  /** True when the new element is one that packed collections do not have. */
  get #isTooLong(): boolean {
    const { newKeyLength, newValueLength, packedElementMax } = this;
    return (
      newKeyLength > packedElementMax ||
      newValueLength > packedElementMax ||
      this.isBlobSized(newKeyLength, newValueLength)
    );
  }

  protected insertNew(): Change {
    if (this.exists && !this.beginChange()) return Change.NO_MEMORY;
    if (!this.isPackedLeaf) return this.#insertInTree();
    const bytes = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs);
    const live = this.exists ? this.liveBytes : Leaf.HEADER_BYTES;
    const isTree =
      this.count >= this.packedEntriesMax ||
      this.#isTooLong ||
      live + bytes + Leaf.SLOT_BYTES > this.shape.packedBytesMax;
    if (isTree) return this.#insertUnpacked();
    if (this.exists && this.gap >= bytes + Leaf.SLOT_BYTES) {
      this.insertHere(bytes);
      return Change.DONE;
    }
    return this.growPacked(bytes, 0);
  }

  /** Makes the collection a tree and inserts the new element there. */
  #insertUnpacked(): Change {
    const { newKey, newKeyOffset, newKeyLength, newValue, newValueOffset, newValueLength, newExpiryMs, newScore } =
      this;
    const rank = this.slot;
    const wasAbsent = !this.exists;
    if (this.makeTree() !== Change.DONE) return Change.NO_MEMORY;
    this.setNew(newKey, newKeyOffset, newKeyLength);
    this.setNewValue(newValue, newValueOffset, newValueLength, newExpiryMs);
    this.newScore = newScore;
    if (this.order === Order.SCORE) this.seekMember(newScore, newKey, newKeyOffset, newKeyLength);
    else if (this.order === Order.POSITION) this.moveToRank(rank);
    else this.seekKey(newKey, newKeyOffset, newKeyLength);
    const change = this.#insertInTree();
    if (change !== Change.DONE && wasAbsent) this.removeKey();
    return change;
  }

  #insertInTree(): Change {
    if (this.order === Order.HASH || this.order === Order.SCORE) {
      this.newHash = this.keyspace.hash(0, this.newKey, this.newKeyOffset, this.newKeyLength) >>> 0;
    }
    if (!this.planInsert()) return Change.NO_MEMORY;
    if (this.order === Order.SCORE) {
      const { side, scratch } = this;
      const isVacant = this.vacantHash === this.newHash;
      this.vacantHash = -1;
      this.isSidePlaced = false;
      writeMember(scratch.view, this.newHash, this.newScore);
      if (!(isVacant ? side.planMember(scratch) : side.plan(scratch, 0, MEMBER_BYTES, scratch, 0, 0))) {
        this.dropPlan();
        return Change.NO_MEMORY;
      }
      side.apply();
    }
    this.applyInsert();
    return Change.DONE;
  }

  protected replaceWithNew(): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    if (!this.isPackedLeaf) {
      if (this.order === Order.HASH) this.newHash = this.elementHash;
      return this.replaceInTree() ? Change.DONE : Change.NO_MEMORY;
    }
    const bytes = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs);
    if (this.#isTooLong || this.liveBytes + bytes > this.shape.packedBytesMax) return this.#replaceUnpacked();
    if (this.fitsOver(bytes)) {
      this.overwriteHere(bytes);
      return Change.DONE;
    }
    if (this.gap >= bytes) {
      this.replaceHere(bytes);
      return Change.DONE;
    }
    return this.growPacked(bytes, 1);
  }

  #replaceUnpacked(): Change {
    const { newKey, newKeyOffset, newKeyLength, newValue, newValueOffset, newValueLength, newExpiryMs, slot } = this;
    if (this.makeTree() !== Change.DONE) return Change.NO_MEMORY;
    if (this.order === Order.POSITION) this.moveToRank(slot);
    else this.seekKey(newKey, newKeyOffset, newKeyLength);
    if (this.order === Order.POSITION) {
      this.setNew(newKey, newKeyOffset, newKeyLength);
    } else {
      // The key's bytes in the tree: the packed ones may go when memory is looked for.
      this.load();
      this.setNew(this.key, this.keyOffset, this.keyLength);
    }
    this.setNewValue(newValue, newValueOffset, newValueLength, newExpiryMs);
    return this.replaceWithNew();
  }

  // ---- sorted sets: the member in the side tree

  protected removeMember(): void {
    this.load();
    this.seekSide(this.keyspace.hash(0, this.key, this.keyOffset, this.keyLength) >>> 0, this.score);
    this.side.remove();
    this.isSidePlaced = false;
    this.vacantHash = -1;
  }

  /** Positions the side tree on a member of this hash and score, which there is. */
  protected seekSide(hash: number, score: number): void {
    const { side, scratch } = this;
    if (this.isSidePlaced && side.isOnMember(hash, score)) return;
    writeMember(scratch.view, hash, score);
    if (!side.seek(scratch, 0, MEMBER_BYTES)) throw new Error('a member of a sorted set is not in its side tree');
    this.isSidePlaced = true;
  }
}
