import { expect } from 'vitest'
import { table } from './table.js'

const known = new Set(table.map(({ id }) => id))

/** Declares, within a test, the requirements that the test verifies. */
export function proves(...ids: string[]): void {
  if (expect.getState().currentTestName === undefined)
    throw new Error('proves() must be called within a test')
  for (const id of ids)
    if (!known.has(id))
      throw new Error(`Unknown requirement: ${id}; add a row in test/requirements/rows/`)
}
