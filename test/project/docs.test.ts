import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

it('docs/revisions.md equals the output of ccmcp revisions --markdown', () => {
  const printed = execFileSync(
    process.execPath,
    [`${root}dist/cli.js`, 'revisions', '--markdown'],
    { encoding: 'utf8' },
  )
  expect(
    readFileSync(`${root}docs/revisions.md`, 'utf8'),
    'run: node scripts/build.mjs && node dist/cli.js revisions --markdown > docs/revisions.md',
  ).toBe(printed)
})

it('ccmcp revisions prints every revision as text and as JSON', () => {
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [`${root}dist/cli.js`, 'revisions', ...args], {
      encoding: 'utf8',
    })
  const ids = (JSON.parse(run('--json')) as { id: string }[]).map(({ id }) => id)
  expect(ids).toHaveLength(5)
  for (const id of ids) expect(run()).toContain(id)
})
