// Runs the property tests with other seeds, round after round, until one fails.
//
//   node scripts/fuzz.mjs [ROUNDS]     20 by default, about half a minute each
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const rounds = Number(process.argv[2] ?? 20)
const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))
  .filter((path) => readFileSync(join(root, path), 'utf8').includes('/fast-check.js'))
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')

for (let round = 1; round <= rounds; round++) {
  const seed = randomInt(2 ** 31)
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...files], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, TESTS_SEED: String(seed) },
  })
  if (status !== 0) {
    process.stdout.write(
      `round ${round} failed; repeat it with TESTS_SEED=${seed} npx vitest run FILE\n`,
    )
    process.exit(1)
  }
}
process.stdout.write(`${rounds} rounds passed: ${files.length} files each\n`)
