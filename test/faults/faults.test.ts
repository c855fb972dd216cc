import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

it('loses nothing that was acknowledged when it is killed (npm run faults kills more often)', () => {
  const script = fileURLToPath(new URL('../../scripts/faults.mjs', import.meta.url))
  const { stdout, status } = spawnSync(process.execPath, [script, '20'], { encoding: 'utf8' })
  expect(stdout).toContain('20 kills')
  expect(stdout).toContain('0 problems')
  expect(status).toBe(0)
}, 600_000)
