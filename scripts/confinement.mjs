// Runs the confinement tests of the file tools for a minute (CONFINEMENT_SECONDS).
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const env = { CONFINEMENT_SECONDS: '60', ...process.env }
const { status } = spawnSync(
  'npx',
  [
    '--no-install',
    'vitest',
    'run',
    'test/bundled/confinement.test.ts',
    '--reporter=default',
    '--silent=false',
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env,
    shell: process.platform === 'win32',
  },
)
process.exitCode = status ?? 1
