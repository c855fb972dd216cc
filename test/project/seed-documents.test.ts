import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/* The files and test titles in docs/seed-documents.md exist. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs', 'seed-documents.md'), 'utf8')

interface Row {
  what: string
  where: string
  tests: { file: string; titles: string[] }[]
}

const rows: Row[] = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.includes('| where |'))
  .map((line) => {
    const [what = '', where = '', tests = ''] = line.slice(2, -2).split(' | ')
    const named = tests.split('; `').map((part) => {
      const [, file = '', titles = ''] = /^`?([^`"]+)`(.*)$/.exec(part) ?? []
      return {
        file,
        titles: [...titles.matchAll(/ "(.*?)"(?=,|$)/g)].map(([, title]) => title ?? ''),
      }
    })
    return { what, where, tests: tests.startsWith('not yet') ? [] : named }
  })

/** The titles in a test file. */
function titlesIn(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = [
    ...text.matchAll(
      /\b(?:it|describe|test)(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/gs,
    ),
  ]
  return found.map(([, , title]) => (title ?? '').replaceAll("\\'", "'").replace(' in $name', ''))
}

describe('the table of documents', () => {
  it('has every question, block, test, extension and omission', () => {
    const all = rows.map(({ what }) => what).join('\n')
    const wanted = [
      ...Array.from({ length: 12 }, (_, i) => `Q${i + 1}`),
      ...'ABCDEFG'.split('').map((letter) => `Block ${letter}`),
      ...Array.from({ length: 9 }, (_, i) => `Test ${i + 1}`),
      ...Array.from({ length: 3 }, (_, i) => `Extension ${i + 1}`),
      ...Array.from({ length: 4 }, (_, i) => `Omission ${i + 1}`),
    ]
    expect(wanted.filter((each) => !new RegExp(`^${each}\\b`, 'm').test(all))).toEqual([])
  })
  it('names files that exist', () => {
    const named = rows.flatMap(({ where }) =>
      [...where.matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? ''),
    )
    expect(named.length).toBeGreaterThan(50)
    expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([])
  })
  it('names tests that exist', () => {
    const missing = rows.flatMap(({ tests }) =>
      tests.flatMap(({ file, titles }) => {
        if (!existsSync(join(root, file))) return [`${file} is not there`]
        const there = titlesIn(file)
        return titles.filter((title) => !there.includes(title)).map((title) => `${file}: ${title}`)
      }),
    )
    expect(missing).toEqual([])
  })
  it('has a test for each row', () => {
    const bare = rows.filter(
      ({ tests }) => tests.length === 0 || tests.some(({ titles }) => titles.length === 0),
    )
    expect(bare.map(({ what }) => what)).toEqual([])
  })
  it('lists every test of document-004.test.ts', () => {
    const file = 'test/project/document-004.test.ts'
    const named = new Set(
      rows.flatMap(({ tests }) =>
        tests.filter((each) => each.file === file).flatMap(({ titles }) => titles),
      ),
    )
    expect(titlesIn(file).filter((title) => !named.has(title))).toEqual([])
  })
})
