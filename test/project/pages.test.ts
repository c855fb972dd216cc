import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionsPage } from '../../scripts/options-page.mjs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/*
 * The code of a page runs unchanged and prints what the page shows: its `js`
 * blocks are one program, its `text` blocks the output.
 */
const root = fileURLToPath(new URL('../../', import.meta.url))
const docs = join(root, 'docs')
const pages = readdirSync(docs).filter((name) => name.endsWith('.md'))
const read = (page: string) => readFileSync(join(docs, page), 'utf8')
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, code]) => code ?? '',
  )
const runnable = pages.filter((page) => blocks(read(page), 'text').length > 0)

describe('a page of the documentation', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-docs-'))
  beforeAll(() => {
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules', 'ccmcp'), 'dir')
    for (const name of ['zod', '@opentelemetry'])
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'dir')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each(runnable)('%s prints the output it shows', (page) => {
    const file = `${page}.mjs`
    writeFileSync(join(folder, file), blocks(read(page), 'js').join('\n'))
    // The environment of the tests must not affect the output.
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], NO_COLOR: '1' }
    const { stdout, stderr } = spawnSync(process.execPath, [file], {
      cwd: folder,
      encoding: 'utf8',
      env,
    })
    expect(stderr).toBe('')
    expect(stdout).toBe(blocks(read(page), 'text').join(''))
  })

  it('options.md is up to date', () => {
    expect(read('options.md'), 'node scripts/options-page.mjs > docs/options.md').toBe(
      optionsPage(),
    )
  })

  it('exists for each feature and is linked from the index', () => {
    const features = [
      'tools',
      'structured-results',
      'resources',
      'prompts',
      'completion',
      'logging',
      'progress-and-cancellation',
      'pagination',
      'changes',
      'asking',
      'middleware',
      'limits',
      'caching',
    ]
    expect(runnable).toContain('features.md')
    expect(runnable).toContain('official-sdk.md')
    for (const feature of features) {
      expect(runnable).toContain(`${feature}.md`)
      expect(read('features.md')).toContain(`(${feature}.md)`)
    }
  })

  it.each(pages)('%s has no broken links', (page) => {
    for (const [, target = ''] of read(page).matchAll(/\]\(([a-z-]+\.md)(?:#[^)]*)?\)/g))
      expect(pages).toContain(target)
  })
})
