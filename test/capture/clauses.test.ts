import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { RULES, type RuleId, clauseUrl } from '../../src/capture/rules.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/*
 * Every clause names a section that its revision has. The specification is not part of this project; this test needs a
 * checkout of https://github.com/modelcontextprotocol/modelcontextprotocol:
 *
 *   SPECIFICATION=…/docs/specification npx vitest run test/capture/clauses.test.ts
 */
const folder = process.env['SPECIFICATION'] ?? ''

/** Rules about what a revision does not have are not reported in it. */
const LATER: Readonly<Record<string, RegExp>> = {
  'output-schema': /^(?:2024-11-05|2025-03-26)/,
  'version-header': /^(?:2024-11-05|2025-03-26)/,
  'failed-ping': /^2026/,
  'http-status': /^2024-11-05/,
  'origin-not-checked': /^2024-11-05/,
  'before-initialized': /^2026/,
}

function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    encodeURIComponent(
      heading
        .toLowerCase()
        .replaceAll(/[`*_().,:]/g, '')
        .trim()
        .replaceAll(/\s+/g, '-'),
    ),
  )
}

it.skipIf(folder === '')('every clause is a section of the specification', () => {
  const missing: string[] = []
  for (const rule of Object.keys(RULES) as RuleId[])
    for (const revision of revisions) {
      const url = clauseUrl(rule, revision)
      const [, id = '', path = '', anchor] =
        /modelcontextprotocol\.io\/specification\/([\d-]+)\/([^#]*)#?(.*)$/.exec(url) ?? []
      if (id === '' || LATER[rule]?.test(revision.id) === true) continue
      const file = [`${path}.mdx`, `${path}/index.mdx`]
        .map((name) => join(folder, id, name))
        .find((name) => existsSync(name))
      if (file === undefined) missing.push(`${rule}: ${url} is no page`)
      else if (anchor !== '' && anchor !== undefined && !anchorsOf(file).includes(anchor))
        missing.push(`${rule}: ${url} is no section`)
    }
  expect(missing).toEqual([])
})
