import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
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
 */
const folder = process.env['SPECIFICATION'] ?? ''

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
    let place = `${page}#`
    for (const paragraph of readFileSync(join(folder, revision, name), 'utf8').split(
      /\n(?=#{1,6}\s)/,
    )) {
      const [, heading] = /^#{1,6}\s+(.*)/.exec(paragraph) ?? []
      if (heading !== undefined) place = `${page}#${anchorOf(heading)}`
      // A keyword may be broken over two lines.
      for (const [found] of paragraph.replaceAll(/\s+/g, ' ').matchAll(KEYWORDS))
        yield [place, SAME[found] ?? found]
    }
  }
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
    const rows = table.flatMap(({ at, levels }) =>
      Object.entries(at).flatMap(([place, dates]) =>
        dates.includes(revision) && !isOfExtension(place)
          ? levels.map((level): [string, string] => [place, level])
          : [],
      ),
    )
    expect(counted(rows)).toEqual(counted(keywords(revision)))
  })
})
