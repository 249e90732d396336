/*
 * Idle time-outs: a wheel of IDLE_SLOTS lists, one per IDLE_TICK_MS.
 *
 * Owns the wheel. Activity only stamps the connection; its place in the wheel is corrected when its slot comes up, so a
 * busy connection costs one list operation per time-out, not per request. The invariant: a connection with a limit is in
 * exactly one slot, no later than its deadline (or a whole revolution away when that is further).
 */
#include "pump.h"

#include <errno.h>

void idle_init(pump *p) {
  for (int i = 0; i < IDLE_SLOTS; i++) p->idle_slots[i] = -1;
  p->idle_tick = p->now_ms / IDLE_TICK_MS;
}

void idle_disarm(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if (c->idle_slot < 0) return;
  if (c->idle_prev >= 0) {
    conn_at(p, c->idle_prev)->idle_next = c->idle_next;
  } else {
    p->idle_slots[c->idle_slot] = c->idle_next;
  }
  if (c->idle_next >= 0) conn_at(p, c->idle_next)->idle_prev = c->idle_prev;
  c->idle_slot = -1;
  p->idle_count--;
}

void idle_arm(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  idle_disarm(p, number);
  if (c->idle_ms == 0) return;
  int64_t tick = (c->active_ms + c->idle_ms) / IDLE_TICK_MS + 1;
  if (tick <= p->idle_tick) tick = p->idle_tick + 1;
  if (tick >= p->idle_tick + IDLE_SLOTS) tick = p->idle_tick + IDLE_SLOTS - 1;
  c->idle_slot = (int32_t)(tick % IDLE_SLOTS);
  c->idle_prev = -1;
  c->idle_next = p->idle_slots[c->idle_slot];
  if (c->idle_next >= 0) conn_at(p, c->idle_next)->idle_prev = number;
  p->idle_slots[c->idle_slot] = number;
  p->idle_count++;
}

static void expire_slot(pump *p, int slot) {
  int32_t number = p->idle_slots[slot];
  while (number >= 0) {
    const pump_conn *c = conn_at(p, number);
    const int32_t next = c->idle_next;
    if (p->now_ms - c->active_ms >= c->idle_ms) {
      conn_close(p, number, ETIMEDOUT, true);
    } else {
      idle_arm(p, number);
    }
    number = next;
  }
}

void idle_expire(pump *p) {
  const int64_t now_tick = p->now_ms / IDLE_TICK_MS;
  if (p->idle_count == 0 || now_tick - p->idle_tick > IDLE_SLOTS) {
    /* A long stop: look at every slot once. */
    const int64_t behind = p->idle_count == 0 ? now_tick : now_tick - IDLE_SLOTS;
    if (behind > p->idle_tick) p->idle_tick = behind;
  }
  while (p->idle_tick < now_tick) {
    p->idle_tick++;
    expire_slot(p, (int)(p->idle_tick % IDLE_SLOTS));
  }
}

int32_t idle_wait_ms(const pump *p, int32_t limit_ms) {
  if (p->idle_count == 0) return limit_ms;
  for (int64_t tick = p->idle_tick + 1; tick < p->idle_tick + IDLE_SLOTS; tick++) {
    const int64_t left = tick * IDLE_TICK_MS - p->now_ms;
    if (left >= limit_ms) return limit_ms;
    if (p->idle_slots[tick % IDLE_SLOTS] >= 0) return left < 0 ? 0 : (int32_t)left + 1;
  }
  return limit_ms;
}
