import { TURN, goOnLater } from './turns.js'

/** Steps in one turn: at its end Node writes what they have sent, which takes longer than the steps. */
export const STEPS = 100
/** Steps between looks at the clock: a few steps are taken in one turn, however slow the machine is. */
const BATCH = 20

const waiting = new Set<Iterator<unknown>>()
let begun = false

/**
 * Does work whose steps are too small for a turn of their own: some at the end of this turn of the event loop, the rest in
 * later ones. Each work gets one step, then the next: one with many does not hold up the others.
 */
export function inSmallSteps(work: Iterator<unknown>): void {
  waiting.add(work)
  if (begun) return
  begun = true
  queueMicrotask(takeSteps)
}

function takeSteps(): void {
  const end = performance.now() + TURN
  let steps = 0
  try {
    for (const work of waiting) {
      waiting.delete(work)
      if (work.next().done !== true) waiting.add(work)
      if (++steps >= STEPS || (steps % BATCH === 0 && performance.now() >= end)) return
    }
  } finally {
    begun = waiting.size > 0
    // One may have failed: the others go on.
    if (begun) goOnLater(takeSteps)
  }
}
