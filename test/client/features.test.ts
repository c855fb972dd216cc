import { describe, expect, it } from 'vitest'
import { type Client, RpcError, memory } from '../../src/client.js'
import { createServer, prompt, resource } from '../../src/index.js'
import { matrix } from '../../src/testing.js'

const server = createServer({
  name: 'features',
  version: '1',
  pageSize: 2,
  resources: [
    ...Array.from({ length: 5 }, (_, i) =>
      resource({ uri: `note://${i}`, name: `note ${i}`, read: () => `Note ${i}` }),
    ),
    resource({
      uri: 'file:///{name}',
      name: 'files',
      read: ({ name }) => name,
      complete: { name: (typed) => [`${typed}.txt`] },
    }),
  ],
  prompts: [
    prompt({
      name: 'greet',
      arguments: {
        name: {},
        tone: {
          required: false,
          complete: (typed, { name = 'nobody' }) => [`${typed} for ${name}`],
        },
      },
      build: ({ name }) => `Greet ${name}`,
    }),
    prompt({ name: 'wave', build: () => 'Wave' }),
    prompt({ name: 'bow', build: () => 'Bow' }),
  ],
})

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

const scenarios: Record<string, (client: Client, revision: string) => Promise<void>> = {
  async 'lists resources of all pages'(client) {
    expect((await all(client.resources())).map(({ uri }) => uri)).toEqual([
      'note://0',
      'note://1',
      'note://2',
      'note://3',
      'note://4',
    ])
  },
  async 'lists templates'(client) {
    expect(await all(client.resourceTemplates())).toMatchObject([
      { uriTemplate: 'file:///{name}', name: 'files' },
    ])
  },
  async 'lists prompts'(client) {
    expect((await all(client.prompts())).map(({ name }) => name)).toEqual(['greet', 'wave', 'bow'])
  },
  async 'reads resources'(client) {
    expect((await client.readResource('note://3')).contents).toMatchObject([
      { uri: 'note://3', text: 'Note 3' },
    ])
    expect((await client.readResource('file:///a')).contents).toMatchObject([{ text: 'a' }])
    await expect(client.readResource('note://9')).rejects.toThrow(RpcError)
  },
  async 'gets prompts'(client) {
    expect((await client.getPrompt('greet', { name: 'MCP' })).messages).toEqual([
      { role: 'user', content: { type: 'text', text: 'Greet MCP' } },
    ])
    expect((await client.getPrompt('wave')).messages).toHaveLength(1)
    await expect(client.getPrompt('greet')).rejects.toThrow('name is required')
  },
  async 'says how to pass names and arguments, if it gets an object'(client) {
    // @ts-expect-error: as the client of the official SDK takes them
    await expect(client.callTool({ name: 'x', arguments: {} })).rejects.toThrow(
      new TypeError('callTool(name, args): the first argument must be a string, not an object'),
    )
    // @ts-expect-error: the same
    await expect(client.readResource({ uri: 'note://3' })).rejects.toThrow(
      new TypeError('readResource(uri): the first argument must be a string, not an object'),
    )
    // @ts-expect-error: the same
    await expect(client.getPrompt({ name: 'wave' })).rejects.toThrow(
      new TypeError('getPrompt(name, args): the first argument must be a string, not an object'),
    )
  },
  async 'completes, with the other arguments where the revision has them'(client, revision) {
    expect(
      await client.complete({ template: 'file:///{name}' }, { name: 'name', value: 'a' }),
    ).toMatchObject({ values: ['a.txt'] })
    const known = revision === '2024-11-05' || revision === '2025-03-26' ? 'nobody' : 'MCP'
    const completion = await client.complete(
      { prompt: 'greet' },
      { name: 'tone', value: 'warm' },
      { name: 'MCP' },
    )
    expect(completion).toEqual({ values: [`warm for ${known}`], total: 1, hasMore: false })
  },
}

describe.each(Object.entries(scenarios))('a client %s', (_, run) => {
  it.each(matrix({ memory: memory(server) }).map((cell) => [cell.name, cell] as const))(
    '%s',
    async (_name, cell) => {
      const client = await cell.connect()
      await run(client, cell.revision)
      await client.close()
    },
  )
})
