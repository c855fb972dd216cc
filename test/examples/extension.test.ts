import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client as OfficialClient } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, it } from 'vitest'
import { connect, stdio } from '../../src/client.js'
import { extensionNames } from '../official/schema-validator.js'

/* The extension of docs/extensions.md, with our client and with that of the official SDK 2.x. */

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const ID = 'com.example/quota'
const CHANGED = 'notifications/quota/changed'
const COMMAND = [pathOf('dist/cli.js'), 'serve', pathOf('examples/extension.mjs')]
extensionNames.add('quota_exceeded').add(CHANGED)

it('has at most 40 lines, which the page shows', () => {
  const code = readFileSync(pathOf('examples/extension.mjs'), 'utf8')
  expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(40)
  const page = readFileSync(pathOf('docs/extensions.md'), 'utf8')
  expect(page).toContain(`\n\`\`\`js\n${code}\`\`\`\n`)
})

describe('with our client', () => {
  it('has its method, notification and result type', async () => {
    const heard: unknown[] = []
    await using client = await connect(stdio(process.execPath, COMMAND), {
      extensions: [
        {
          id: ID,
          methods: { 'quota/get': { nameParam: 'unit' } },
          notifications: { [CHANGED]: ({ used }, { settings }) => heard.push([used, settings]) },
          resultTypes: { quota_exceeded: ({ limit }) => ({ content: [], isError: true, limit }) },
        },
      ],
    })
    await client.listen('quotaChanged', true)
    expect(await client.callTool('greet')).toMatchObject({ content: [{ text: 'Hello' }] })
    expect(await client.callTool('greet')).toMatchObject({ isError: true, limit: 1 })
    expect(await client.request('quota/get', { unit: 'calls' })).toMatchObject({ used: 1 })
    expect(heard).toEqual([[1, { limit: 1 }]])
  })

  it('is refused without a declaration; tools work', async () => {
    await using client = await connect(stdio(process.execPath, COMMAND))
    const got = client.request('quota/get', { unit: 'calls' })
    await expect(got).rejects.toMatchObject({ code: -32021 })
    for (let calls = 0; calls < 3; calls++)
      expect(await client.callTool('greet')).toMatchObject({ content: [{ text: 'Hello' }] })
  })
})

describe('with the client of the official SDK', () => {
  /** A Standard Schema that accepts everything. */
  const ANY = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => ({ value: value as Record<string, unknown> }), // an object, as JSON-RPC has it
    },
  }
  const GET = { method: 'quota/get', params: { unit: 'calls' } }

  async function open(capabilities: object): Promise<OfficialClient> {
    const client = new OfficialClient(
      { name: 'official', version: '1.0.0' },
      { versionNegotiation: { mode: 'auto' }, capabilities },
    )
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: COMMAND,
      stderr: 'pipe',
    })
    await client.connect(transport)
    return client
  }

  it('has its method, notification and result type', async () => {
    const client = await open({ extensions: { [ID]: {} } })
    try {
      expect(client.getServerCapabilities()?.extensions).toEqual({ [ID]: { limit: 1 } })
      const heard = new Promise((resolve) =>
        client.setNotificationHandler(CHANGED, { params: ANY }, (params) => resolve(params)),
      )
      await client.listen({ quotaChanged: true } as object) // a field of the extension
      expect(await client.callTool({ name: 'greet', arguments: {} })).toMatchObject({
        content: [{ text: 'Hello' }],
      })
      expect(await heard).toMatchObject({ used: 1 })
      await expect(client.callTool({ name: 'greet', arguments: {} })).rejects.toThrow(
        'quota_exceeded',
      )
      expect(await client.request(GET, ANY)).toMatchObject({ used: 1 })
    } finally {
      await client.close()
    }
  })

  it('is refused without a declaration; tools work', async () => {
    const client = await open({})
    try {
      await expect(client.request(GET, ANY)).rejects.toMatchObject({ code: -32021 })
      for (let calls = 0; calls < 3; calls++)
        expect(await client.callTool({ name: 'greet', arguments: {} })).toMatchObject({
          content: [{ text: 'Hello' }],
        })
    } finally {
      await client.close()
    }
  })
})
