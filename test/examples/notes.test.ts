import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as OfficialClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConnectOptions, connect, stdio } from '../../src/client.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/* The TypeScript example, run as a program with its types stripped, since Node 20 cannot run TypeScript. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-notes-'))
const program = join(folder, 'notes.mjs')

beforeAll(async () => {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'ccmcp'), 'dir')
  symlinkSync(join(root, 'node_modules', 'zod'), join(folder, 'node_modules', 'zod'), 'dir')
  await using bundle = await rolldown({
    input: join(root, 'examples', 'notes.ts'),
    external: /^(?:ccmcp|zod)/,
    platform: 'node',
  })
  await bundle.write({ file: program })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(revisions.map(({ id, fields }) => [id, fields.formString.length > 0] as const))(
  'in %s',
  (revision, asks) => {
    const start = (options: ConnectOptions = {}) =>
      connect(stdio(process.execPath, [program]), { revision, ...options })

    it('finds, saves, reads and lists notes', async () => {
      await using client = await start()
      const changed = new Promise((resolve) =>
        client.on('notifications/resources/list_changed', resolve),
      )
      const progress: unknown[] = []
      const found = await client.callTool(
        'search_notes',
        { words: 'MILK' },
        { onProgress: (each) => progress.push(each) },
      )
      expect(JSON.stringify(found.content)).toContain('note://notes/Shopping')
      expect(progress).toEqual([{ progress: 1, total: 1 }])
      expect(await client.callTool('search_notes', { words: 'tea' })).toMatchObject({
        isError: true,
        content: [{ text: 'No note has "tea". There are: Shopping.' }],
      })
      const saved = await client.callTool('save_note', { title: 'To do', text: '# Today' })
      expect(JSON.stringify(saved.content)).toContain('note://notes/To%20do')
      if (revision !== '2026-07-28') await changed
      const listed = []
      for await (const each of client.resources()) listed.push(each)
      expect(listed).toContainEqual({
        uri: 'note://notes/To%20do',
        name: 'To do',
        mimeType: 'text/markdown',
      })
      expect((await client.readResource('note://notes/To%20do')).contents).toEqual([
        { uri: 'note://notes/To%20do', mimeType: 'text/markdown', text: '# Today' },
      ])
      await expect(client.readResource('note://notes/nope')).rejects.toThrow('Resource not found')
      expect(
        await client.complete({ prompt: 'summarize' }, { name: 'title', value: 't' }),
      ).toMatchObject({ values: ['To do'] })
      expect((await client.getPrompt('summarize', { title: 'To do' })).messages).toHaveLength(2)
      expect(await client.callTool('save_note', { title: '', text: '' })).toMatchObject({
        isError: true,
      })
    })

    it.skipIf(!asks)('asks before replacing a note', async () => {
      const answers = [false, true]
      await using client = await start({
        elicit: () => ({ action: 'accept', content: { replace: answers.shift() === true } }),
      })
      const replace = () => client.callTool('save_note', { title: 'Shopping', text: 'Buy tea.' })
      expect(await replace()).toMatchObject({
        isError: true,
        content: [{ text: 'The user wants to keep the old note.' }],
      })
      expect(await replace()).toMatchObject({
        isError: false,
        structuredContent: { uri: 'note://notes/Shopping', replaced: true },
      })
      expect((await client.readResource('note://notes/Shopping')).contents[0]?.text).toBe(
        'Buy tea.',
      )
    })
  },
)

it('serves the official client over Streamable HTTP', async () => {
  const child: ChildProcess = spawn(process.execPath, [program, '--http', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let said = ''
      child.stderr?.on('data', (chunk: Buffer) => {
        said += chunk.toString()
        const [, found] = /Listening on (\S+)/.exec(said) ?? []
        if (found !== undefined) resolve(found)
      })
      child.on('exit', () => reject(new Error(said)))
    })
    const client = new OfficialClient({ name: 'c', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const { structuredContent } = await client.callTool({
      name: 'save_note',
      arguments: { title: 'A', text: 'B' },
    })
    expect(structuredContent).toEqual({ uri: 'note://notes/A', replaced: false })
    await client.close()
  } finally {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
})
