/*
 * fast-check for `npm test`: with a fixed seed, so that a run does not fail on a value that the
 * change had nothing to do with, and a quarter of the runs. `npm run fuzz` does all of them,
 * with other seeds.
 */
import fc from 'fast-check'

const seed = process.env['TESTS_SEED']

fc.configureGlobal({ seed: Number(seed ?? 1) })

/** The number of runs of a property: all of them in `npm run fuzz`. */
export function runs(all: number): number {
  return seed === undefined ? Math.ceil(all / 4) : all
}

export { fc }
