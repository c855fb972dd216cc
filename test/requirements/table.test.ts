import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { revisions } from '../../src/protocol/revisions/index.js'
import { leftOut, pages } from './pages.js'
import { UNBOUND, linksOf } from './row.js'
import { table } from './table.js'

/* Every requirement of the specification on a server or a client is cited by a test that fails without it. */

const folder = fileURLToPath(new URL('../', import.meta.url))
const own = fileURLToPath(import.meta.url)
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .map((name) => folder + name)
  .filter((path) => path.endsWith('.test.ts') && path !== own)
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))

/** The ids that a file cites. */
const cited = (text: string) =>
  [...text.matchAll(/\bproves\(([^)]*)\)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/'([^']+)'/g)].map(([, id]) => id ?? ''),
  )

const citations = new Map(files.map(({ path, text }) => [path, cited(text)]))
const everything = new Set([...citations.values()].flat())
const bound = table.filter(({ unbound }) => unbound === undefined)
const pending = bound.filter((row) => row.pending !== undefined)

describe('the requirements', () => {
  it('are each cited by a test', () => {
    const missing = bound.filter(
      ({ id, pending: feature }) => feature === undefined && !everything.has(id),
    )
    expect(missing.map(({ id, says }) => `${id}: ${says}`)).toEqual([])
  })

  it('exist and bind ccmcp if a test cites them', () => {
    const ids = new Set(bound.map(({ id }) => id))
    expect([...everything].filter((id) => !ids.has(id))).toEqual([])
  })

  it('are not marked pending if a test cites them', () => {
    expect(pending.filter(({ id }) => everything.has(id)).map(({ id }) => id)).toEqual([])
  })

  it('are not cited by skipped tests', () => {
    const idle = files.filter(
      ({ path, text }) =>
        citations.get(path)?.length !== 0 &&
        /\b(?:it|describe|test)\.(?:skip|todo|only)\b/.test(text),
    )
    expect(idle.map(({ path }) => path)).toEqual([])
  })

  it('have a unique id, a sentence, and a reason if they do not bind ccmcp', () => {
    expect(new Set(table.map(({ id }) => id)).size).toBe(table.length)
    for (const { id, unbound, pending: feature, says } of table) {
      if (unbound !== undefined)
        expect([id, UNBOUND[unbound].length > 10, feature]).toEqual([id, true, undefined])
      expect([id, says]).toEqual([id, expect.stringMatching(/^[A-Z`−].*\.$/s)])
    }
  })

  it('refer to supported revisions', () => {
    const served = new Set(revisions.map(({ id }) => id))
    for (const row of table) {
      expect(linksOf(row).length).toBeGreaterThan(0)
      for (const dates of Object.values(row.at))
        for (const date of dates) expect(served).toContain(date)
    }
  })

  it('add up to the number of keywords of every page in every revision', () => {
    const counted: Record<string, Record<string, number>> = {}
    for (const { at, levels } of table) {
      for (const [place, dates] of Object.entries(at)) {
        const page = place.slice(0, place.indexOf('#'))
        const counts = (counted[page] ??= {})
        for (const date of dates) counts[date] = (counts[date] ?? 0) + levels.length
      }
    }
    expect(counted).toEqual(pages)
    for (const [page, why] of Object.entries(leftOut))
      expect([page, pages[page], why.length > 10]).toEqual([page, undefined, true])
  })

  it('are counted', () => {
    const waiting: Record<string, number> = {}
    for (const { pending: feature = '' } of pending) waiting[feature] = (waiting[feature] ?? 0) + 1
    const list = Object.entries(waiting).map(([feature, count]) => `${feature} ${count}`)
    console.info(
      `${table.length} requirements, ${bound.length} bind ccmcp: ${bound.length - pending.length} cited, pending: ${list.join(', ') || 'none'}`,
    )
    expect(bound.length).toBeGreaterThan(300)
  })
})
