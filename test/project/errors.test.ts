import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import * as rpc from '../../src/jsonrpc/errors.js'
import * as mcp from '../../src/protocol/errors.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { officialSchemas } from '../official/schemas.js'

/* docs/errors.md and the sources have the same codes. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(`${root}docs/errors.md`, 'utf8')
const documented = new Set(
  [...page.matchAll(/^\| (−?)(\d{3,5}) \|/gm)].map(
    ([, sign, digits]) => Number(digits) * (sign === '−' ? -1 : 1),
  ),
)
const named = Object.values<unknown>({ ...rpc, ...mcp }).flatMap((value) =>
  typeof value === 'number' ? [value] : [],
)
const written = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .flatMap((name) =>
    [...readFileSync(`${root}src/${name}`, 'utf8').matchAll(/(?<![\w.])-(32\d{3})\b/g)].map(
      ([, digits]) => -Number(digits),
    ),
  )

/** Documented codes that ccmcp does not send, and why. */
const FOREIGN: Readonly<Record<string, string>> = {
  '-32042': 'ccmcp asks instead',
}

/** Codes of errors that are not sent: those of the union types in jsonrpc/errors.ts. */
const typed = [
  ...readFileSync(`${root}src/jsonrpc/errors.ts`, 'utf8').matchAll(/^  \| '([A-Z_]+)'$/gm),
].map(([, code = '']) => code)
const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== 'jsonrpc/errors.ts')
  .map((name) => readFileSync(`${root}src/${name}`, 'utf8'))
  .join('\n')

describe('the string codes in docs/errors.md', () => {
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code)

  it('are those of ErrorCode, in alphabetical order', () => {
    expect(typed).toContain('CHANNEL_CLOSED')
    expect(listed).toEqual(typed.toSorted())
  })

  it('are all used', () => {
    const used = `${sources}\n${readFileSync(`${root}src/jsonrpc/errors.ts`, 'utf8').replaceAll(/^  \| '.*$/gm, '')}`
    expect(typed.filter((code) => !used.includes(`'${code}'`))).toEqual([])
  })

  it('include every code that an error is created with', () => {
    const created = [
      ...sources.matchAll(
        /(?:withCode|new (?:RequestFailedError|AuthorizationError))\(\s*'(\w+)'|\bcode(?:: ErrorCode)?(?:: | = )'([A-Z_]+)'/g,
      ),
    ].map(([, first, second]) => first ?? second)
    expect(created.length).toBeGreaterThan(15)
    expect(created.filter((code) => !listed.includes(code))).toEqual([])
  })
})

describe('the error handling of src', () => {
  const SEARCH =
    /(?<!typeof \w+)\.message\s*(?:===|!==)(?!\s*'')|\b(?:reason|message|problem)\.(?:includes|match|search|endsWith)\(|\.(?:test|exec)\(\s*\w+\.message/g

  it('distinguishes errors by their codes, not by their messages', () => {
    expect(sources.match(SEARCH) ?? []).toEqual([])
  })

  it.each([
    "error.message.includes('in use')",
    "reason.includes('EADDRINUSE')",
    "error.message === 'x'",
    '/ at position/.exec(error.message)',
  ])('would be reported for %s', (code) => {
    expect(code).toMatch(SEARCH)
  })
})

describe('docs/errors.md', () => {
  it('has every code that the sources use', () => {
    const used = new Set([
      ...named,
      ...written,
      ...revisions.map(({ resourceNotFound }) => resourceNotFound),
    ])
    expect([...used].filter((code) => !documented.has(code))).toEqual([])
  })

  it('marks codes that are never sent', () => {
    const used = new Set([...named, ...written])
    const extra = [...documented].filter((code) => !used.has(code))
    expect(extra.filter((code) => !(code in FOREIGN))).toEqual([])
    for (const code of Object.keys(FOREIGN))
      expect(page).toMatch(new RegExp(`−${code.slice(1)}[^\\n]*never send`))
  })

  it('has every code of the official schemas', () => {
    const official = new Set(
      Object.values(officialSchemas).flatMap((schema) =>
        [...JSON.stringify(schema).matchAll(/"const":(-32\d{3})\b/g)].map(([, code]) =>
          Number(code),
        ),
      ),
    )
    expect(official.size).toBeGreaterThan(3)
    expect([...official].filter((code) => !documented.has(code))).toEqual([])
  })
})
