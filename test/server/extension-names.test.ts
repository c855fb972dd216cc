import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import {
  type CallToolResult,
  type Params,
  type ToolListing,
  extension,
} from '../../src/extensions.js'
import { createServer, tool } from '../../src/index.js'

declare module 'ccmcp' {
  interface ToolFields {
    weight?: number
  }
}
declare module 'ccmcp/client' {
  interface Requests {
    'weights/get': { params: { of: string }; result: Weight }
  }
}

/** Has no index signature, as most types of users. */
interface Weight {
  weight: number
}

const page = readFileSync(new URL('../../docs/extensions.md', import.meta.url), 'utf8')
const [server = '', client = ''] = page.split('## The client')

/** The names in the first column of the table of a section. */
const documented = (section: string) =>
  [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name),
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
    const listed = [...cell.matchAll(/`(\w+)(?:\(params, call\))?`/g)].map(([, name]) => name)
    expect(listed.toSorted()).toEqual(names.toSorted())
  })

  it('of the client', async () => {
    const target = memory(createServer({ name: 'x', version: '1' }))
    const names = await known(() => connect(target, { extensions: [{ id, ...unknown }] }))
    expect(names.length).toBeGreaterThan(4)
    expect(documented(client).toSorted()).toEqual(names.toSorted())
  })
})

it('types tool fields and requests that are declared, and results that are interfaces', async () => {
  const weights = extension({
    id,
    toolFields: { weight: (value) => (typeof value === 'number' ? undefined : 'must be a number') },
    methods: {
      'weights/get': { serve: (_: Params): Weight => ({ weight: heavy.weight ?? 0 }) },
    },
    listTool: (listing: ToolListing, { weight }): ToolListing => ({
      ...listing,
      description: `${weight ?? 0} kg`,
    }),
    callTool: async (_, run): Promise<CallToolResult> => await run(),
  })
  const heavy = tool({ name: 'heavy', weight: 7, run: () => 'done' })
  const made = createServer({ name: 'x', version: '1', tools: [heavy], extensions: [weights] })
  await using connected = await connect(memory(made), { extensions: [{ id }] })
  const { weight } = await connected.request('weights/get', { of: 'heavy' })
  const typed: number = weight
  expect(typed).toBe(7)
  const listed: ToolListing[] = []
  for await (const each of connected.tools()) listed.push(each)
  expect(listed).toMatchObject([{ description: '7 kg' }])
})
