import { execFile, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { findProgram } from '../programs.js'

/* examples/cluster: two processes, Redis and an nginx with round robin. */

const available =
  spawnSync('nginx', ['-v']).status === 0 && findProgram('redis')?.endsWith('redis-server') === true

it.skipIf(!available)(
  'serves a session by one process, and by the other one when that ends; tells of changes in both',
  async () => {
    const program = fileURLToPath(new URL('../../examples/cluster/run.mjs', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [program])
    expect(stdout.split('\n').slice(1)).toEqual([
      '4 calls of one session: 1 process has served them',
      'a client of one process was told of the changes in 2 processes',
      'that process has ended; 4 more calls: the other one',
      '',
    ])
  },
  60_000,
)
