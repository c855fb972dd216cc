import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { revisions } from '../../src/protocol/revisions/index.js'
import { officialSchemas } from './schemas.js'

/*
 * The schemas of the package are those of the specification. Its files are not part of this project; this test needs a
 * checkout of https://github.com/modelcontextprotocol/modelcontextprotocol:
 *
 *   SPECIFICATION=…/docs/specification npx vitest run test/official/schemas.test.ts
 */
const folder = process.env['SPECIFICATION'] ?? ''

it('there is a schema of every revision', () => {
  expect(Object.keys(officialSchemas)).toEqual(revisions.map(({ id }) => id))
})

/** Where the package differs on purpose: `integer` instead of `number`. */
const CORRECTED = new Set(['NumberSchema', 'ElicitResult'])

function withoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutProse)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .filter(([name, content]) => name !== 'description' || typeof content !== 'string')
    .map(([name, content]) => [name, withoutProse(content)] as const)
  return Object.fromEntries(entries)
}

describe.skipIf(folder === '')('the schema of', () => {
  it.each(revisions.map(({ id }) => id))('%s is that of the specification', (id) => {
    const text = readFileSync(join(folder, '../../schema', id, 'schema.json'), 'utf8')
    const official = JSON.parse(text) as { $defs?: object; definitions?: object }
    const expected = Object.entries(official.$defs ?? official.definitions ?? {})
    const shipped = officialSchemas[id]?.definitions ?? {}
    expect(Object.keys(shipped)).toEqual(expected.map(([name]) => name))
    for (const [name, definition] of expected)
      if (!CORRECTED.has(name)) expect(shipped[name]).toEqual(withoutProse(definition))
  })
})
