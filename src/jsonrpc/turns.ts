import { nextTurn } from '../runtime.js'

/** Milliseconds of work before others get a turn of the event loop. */
export const TURN = 10

const waiting: (() => void)[] = []

/** Goes on in a later turn of the event loop. One piece of work in each turn, in order: no peer holds up the others. */
export function goOnLater(work: () => void): void {
  if (waiting.push(work) === 1) nextTurn(takeTurn)
}

function takeTurn(): void {
  const work = waiting[0]
  try {
    work?.()
  } finally {
    waiting.shift()
    if (waiting.length > 0) nextTurn(takeTurn)
  }
}
