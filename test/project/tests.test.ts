import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/* Rules for the tests, which share the modules of their worker (vitest.config.ts). */

const folder = fileURLToPath(new URL('../', import.meta.url))
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({
    name: name.replaceAll('\\', '/'),
    text: readFileSync(join(folder, name), 'utf8'),
  }))

function namesOf(pattern: RegExp, except: readonly string[] = []): string[] {
  return files
    .filter(({ name, text }) => pattern.test(text) && !except.includes(name))
    .map(({ name }) => name)
}

describe('the tests', () => {
  it('have no hooks at the top level of helpers: use afterEveryTest', () => {
    const hooks = namesOf(/^(?:before|after)(?:Each|All)\(/m, ['setup.ts'])
    expect(hooks.length).toBeGreaterThan(0)
    expect(hooks.filter((name) => !name.endsWith('.test.ts'))).toEqual([])
  })

  it('mock no modules at the top level: other files have loaded them already', () => {
    expect(namesOf(/^vi\.mock\(/m)).toEqual([])
  })

  it('import fast-check with its fixed seed', () => {
    expect(namesOf(/from 'fast-check'/, ['fast-check.ts', 'project/tests.test.ts'])).toEqual([])
  })
})
