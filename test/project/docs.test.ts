import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

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

it('the pictures of README.md are those of scripts/demo-picture.mjs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-picture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  execFileSync(process.execPath, [`${root}scripts/demo-picture.mjs`, '--folder', folder])
  for (const name of ['demo-dark.svg', 'demo-light.svg'])
    expect(
      readFileSync(join(folder, name), 'utf8'),
      'run: node scripts/build.mjs && node scripts/demo-picture.mjs',
    ).toBe(readFileSync(`${root}docs/${name}`, 'utf8'))
})
