// Static checks: types, lint, format, unused code, and the published package.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
/** @type {[name: string, command: string, args: string[]][]} */
const checks = [
  ['types', 'tsc', ['-p', '.']],
  ['types of the page', 'tsc', ['-p', 'src/workbench/page']],
  ['types of its tests', 'tsc', ['-p', 'test/workbench']],
  ['lint', 'oxlint', ['--type-aware', '--deny-warnings']],
  ['format', 'oxfmt', ['--check']],
  ['unused code', 'knip', []],
  ['package', 'publint', ['--strict']],
  ['package types', 'attw', ['--pack', '.', '--profile', 'esm-only']],
]

let failed = 0
for (const [name, command, args] of checks) {
  const { status, stdout, stderr } = spawnSync('npx', ['--no-install', command, ...args], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  process.stdout.write(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}\n`)
  if (status === 0) continue
  failed++
  process.stdout.write(`${stdout}${stderr}\n`)
}
process.stdout.write(`${checks.length - failed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
