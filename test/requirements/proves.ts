import { expect } from 'vitest'
import { table } from './table.js'

const known = new Set(table.map(({ id }) => id))

/** Says, within a test, which demands of the specification it would fail for. */
export function proves(...ids: string[]): void {
  if (expect.getState().currentTestName === undefined)
    throw new Error('proves() belongs into the body of a test')
  for (const id of ids) if (!known.has(id)) throw new Error(`There is no requirement ${id}`)
}
