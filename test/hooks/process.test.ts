import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { InitializedSession } from '../http/caller.js'

/* In a child process, which an unhandled rejection would end. */

it.each(['throws', 'rejects', 'thenable'])(
  'the process survives failing hooks: %s',
  async (mode) => {
    const script = fileURLToPath(new URL('servers/failing.mjs', import.meta.url))
    const child = spawn(process.execPath, ['--unhandled-rejections=throw', script, mode], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    try {
      let errors = ''
      child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
      const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
      const url = await new Promise<string>((resolve, reject) => {
        child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString().trim()))
        void exited.then(() => reject(new Error(errors)))
      })
      const client = await InitializedSession.open(url, '2025-11-25')
      expect((await client.request('tools/call', { name: 'it' })).text).toContain('"done"')
      expect((await client.request('tools/call', { name: 'hidden' })).json).toMatchObject({
        error: { code: -32603 },
      })
      expect((await client.request('tools/list')).json).toMatchObject({ error: { code: -32603 } })
      expect((await client.end()).status).toBe(503)
      expect((await client.request('ping')).status).toBe(503)
      expect(
        (await (await InitializedSession.open(url, '2025-06-18')).request('ping')).json,
      ).toMatchObject({ result: {} })
      child.kill('SIGTERM')
      expect([await exited, errors]).toEqual([0, ''])
    } finally {
      child.kill('SIGKILL')
    }
  },
)
