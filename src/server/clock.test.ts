import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BIG_STEP_MS, Clock } from './clock.js';

class FakeTime {
  mono = 5000;
  wall = 1_700_000_000_000;
  monotonicMs(): number {
    return this.mono;
  }
  realtimeMs(): number {
    return this.wall;
  }
  pass(ms: number): void {
    this.mono += ms;
    this.wall += ms;
  }
}

test('follows the wall clock when nothing is set', () => {
  const time = new FakeTime();
  const clock = new Clock(time);
  for (let i = 0; i < 1000; i++) {
    time.pass(7.5);
    expect(clock.tick()).toBe(Math.floor(time.wall));
  }
  expect(clock.bigSteps).toBe(0);
});

test('works a small backward step off without going back', () => {
  const time = new FakeTime();
  const clock = new Clock(time);
  time.pass(200);
  clock.tick();
  time.wall -= 300;
  let last = clock.nowMs;
  for (let i = 0; i < 500; i++) {
    time.pass(10);
    const now = clock.tick();
    expect(now).toBeGreaterThanOrEqual(last);
    last = now;
  }
  expect(Math.abs(last - time.wall)).toBeLessThanOrEqual(1);
});

test('takes a small forward step at the next comparison', () => {
  const time = new FakeTime();
  const clock = new Clock(time);
  time.wall += 400;
  time.pass(100);
  expect(clock.tick()).toBe(time.wall);
});

test.each([3_600_000, -3_600_000])('follows a big step of %i ms', (step) => {
  const time = new FakeTime();
  const clock = new Clock(time);
  time.wall += step;
  time.pass(100);
  expect(clock.tick()).toBe(time.wall);
  expect(clock.bigSteps).toBe(1);
  expect(Math.round(clock.lastBigStepMs)).toBe(step);
});

test('never goes back under any history of small steps', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 150 }), fc.integer({ min: -200, max: 200 }))), (turns) => {
      const time = new FakeTime();
      const clock = new Clock(time);
      let last = clock.nowMs;
      for (const [passed, step] of turns) {
        time.pass(passed);
        time.wall += step;
        const stepsBefore = clock.bigSteps;
        const now = clock.tick();
        if (clock.bigSteps === stepsBefore) expect(now).toBeGreaterThanOrEqual(last);
        else expect(Math.abs(clock.lastBigStepMs)).toBeGreaterThan(BIG_STEP_MS);
        last = now;
      }
    }),
  );
});
