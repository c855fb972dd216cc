import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { createServer } from '../../src/index.js'
import { compile } from '../schema/compiler.js'

const page = readFileSync(new URL('../../docs/extensions.md', import.meta.url), 'utf8')
const [server = '', client = ''] = page.split('## The client')

/** The names in the first column of the table of a section. */
const documented = (section: string) =>
  [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)/g)].map(([, name = '']) => name),
  )

/** The names that an error message lists. */
async function known(use: () => unknown): Promise<string[]> {
  const error = await Promise.resolve()
    .then(use)
    .catch((each: unknown) => String(each))
  return /the options are (.*)/.exec(String(error))?.[1]?.split(', ') ?? []
}

const unknown = { qqqqqqqqqqqqqqqq: 1 } as object
const id = 'com.example/weights'

describe('docs/extensions.md has all names, and no others,', () => {
  it('of extension({ … })', async () => {
    const names = await known(() => extension({ id, ...unknown }))
    expect(names.length).toBeGreaterThan(8)
    expect(documented(server).toSorted()).toEqual(names.toSorted())
  })

  it('of the properties of a method', async () => {
    const methods = { x: { serve: () => ({}), ...unknown } }
    const names = await known(() => extension({ id, methods }))
    const row = server.split('\n').find((line) => line.startsWith('| `methods`')) ?? ''
    const [, , cell = ''] = row.split('|')
    const listed = [...cell.matchAll(/`(\w+)(?:\(params, call\))?`/g)].map(([, name = '']) => name)
    expect(listed.toSorted()).toEqual(names.toSorted())
  })

  it('of the client', async () => {
    const target = memory(createServer({ name: 'x', version: '1' }))
    const names = await known(() => connect(target, { extensions: [{ id, ...unknown }] }))
    expect(names.length).toBeGreaterThan(4)
    expect(documented(client).toSorted()).toEqual(names.toSorted())
  })
})

describe('the declarations of docs/extensions.md', () => {
  const [, declarations = ''] = /^```ts\n([\s\S]*?)^```/m.exec(page) ?? []
  const program = (cost: string) => `
    import { createServer, tool } from 'ccmcp'
    import { type Client, connect, memory } from 'ccmcp/client'
    import { type CallToolResult, type Params, type ToolListing, extension } from 'ccmcp/extensions'
    ${declarations}
    /** Has no index signature, as most types of users. */
    interface Usage {
      used: number
    }
    const quota = extension({
      id: 'com.example/quota',
      methods: { 'quota/get': { serve: (_: Params): Usage => ({ used: 1 }) } },
      resultTypes: ['usage'],
      listTool: (listing: ToolListing, { cost }) => ({ ...listing, title: (cost ?? 0).toFixed() }),
      callTool: async (_, run): Promise<CallToolResult | (Usage & { resultType: string })> =>
        Math.random() > 1 ? await run() : { resultType: 'usage', used: 1 },
    })
    const greet = tool({ name: 'greet', cost: ${cost}, run: () => 'Hello' })
    const server = createServer({ name: 's', version: '1', tools: [greet], extensions: [quota] })
    const client: Client = await connect(memory(server), { extensions: [{ id: 'com.example/quota' }] })
    const used: number = (await client.request('quota/get', { unit: 'calls' })).used
    client.on('notifications/quota/changed', (params) => params.used.toFixed())
    await client.request('subscriptions/listen', { notifications: { quotaChanged: true } })
    export { used }
  `

  it('type tool fields, requests and notifications; results may be interfaces', () => {
    expect(compile({ program: program('1') })).toEqual({ output: '', status: 0 })
  })

  it('reject a tool field of another type', () => {
    expect(compile({ program: program("'1'") }).output).toContain("'string' is not assignable")
  })
})
