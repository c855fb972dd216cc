import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { leftOut } from './pages.js'
import { isOfExtension } from './row.js'
import { table } from './table.js'
import { ids } from './wire.js'

/*
 * Compares the rows with the keywords under every heading of the specification.
 * Its text is not part of this project; this test needs a checkout of
 * https://github.com/modelcontextprotocol/modelcontextprotocol:
 *
 *   SPECIFICATION=…/docs/specification npx vitest run test/requirements/specification.test.ts
 *
 * and for an extension the page of its repository, https://github.com/modelcontextprotocol/ext-tasks:
 *
 *   EXTENSION=…/specification/draft/tasks.md npx vitest run test/requirements/specification.test.ts
 */
const folder = process.env['SPECIFICATION'] ?? ''
const extensionPage = process.env['EXTENSION'] ?? ''

const KEYWORDS =
  /\b(?:MUST NOT|MUST|SHOULD NOT|SHOULD|SHALL NOT|SHALL|REQUIRED|NOT RECOMMENDED|RECOMMENDED)\b/g
const SAME: Readonly<Record<string, string>> = {
  SHALL: 'MUST',
  'SHALL NOT': 'MUST NOT',
  'NOT RECOMMENDED': 'RECOMMENDED',
}
/** Headings with irregular anchors. */
const ANCHORS: Readonly<Record<string, string>> = { _meta: 'meta', https: 'https%3A%2F%2F' }

function anchorOf(heading: string): string {
  const plain = heading
    .toLowerCase()
    .replaceAll(/[`*]|<[^>]*>|[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s+/g, '-')
  return ANCHORS[plain] ?? plain
}

/** By `page#anchor`: its keywords. */
function* keywords(revision: string): Generator<[place: string, keyword: string]> {
  for (const name of readdirSync(join(folder, revision), { recursive: true, encoding: 'utf8' })) {
    const page = name.replaceAll('\\', '/').replace(/(?:^|\/)?(?:index)?\.mdx$/, '')
    if (!name.endsWith('.mdx') || page in leftOut) continue
    yield* keywordsIn(page, readFileSync(join(folder, revision, name), 'utf8'))
  }
}

function* keywordsIn(page: string, text: string): Generator<[place: string, keyword: string]> {
  let place = `${page}#`
  for (const paragraph of text.split(/\n(?=#{1,6}\s)/)) {
    const [, heading] = /^#{1,6}\s+(.*)/.exec(paragraph) ?? []
    if (heading !== undefined) place = `${page}#${anchorOf(heading)}`
    // A keyword may be broken over two lines.
    for (const [found] of paragraph.replaceAll(/\s+/g, ' ').matchAll(KEYWORDS))
      yield [place, SAME[found] ?? found]
  }
}

/** The keywords of the rows. */
function rowsOf(revision: string): [place: string, keyword: string][] {
  return table.flatMap(({ at, levels }) =>
    Object.entries(at).flatMap(([place, dates]) =>
      dates.includes(revision) ? levels.map((level): [string, string] => [place, level]) : [],
    ),
  )
}

function counted(
  found: Iterable<[place: string, keyword: string]>,
): Record<string, Record<string, number>> {
  const counts: Record<string, Record<string, number>> = {}
  for (const [place, keyword] of found) {
    const here = (counts[place] ??= {})
    here[keyword] = (here[keyword] ?? 0) + 1
  }
  return counts
}

describe.runIf(existsSync(folder))('the text of the specification', () => {
  it.each(ids)('of %s has the keywords that the rows list', (revision) => {
    const rows = rowsOf(revision).filter(([place]) => !isOfExtension(place))
    expect(counted(rows)).toEqual(counted(keywords(revision)))
  })
})

describe.runIf(existsSync(extensionPage))('the text of an extension', () => {
  it('has the keywords that the rows list', () => {
    const page = `extensions/${basename(extensionPage, '.md')}`
    const rows = rowsOf('2026-07-28').filter(([place]) => place.startsWith(`${page}#`))
    const text = readFileSync(extensionPage, 'utf8')
    expect(counted(rows)).toEqual(counted(keywordsIn(page, text)))
  })
})
