import { describe, expect, it } from 'vitest'
import { RpcError, connect, memory } from '../../src/client.js'
import { type Principal, createServer, form, prompt, resource, tool } from '../../src/index.js'
import { play } from '../../src/harness/play.js'
import { inProcessHttp, matrix, playTranscript } from '../../src/testing.js'

/* Servers in the same process, over memory and over HTTP without a port, with and without a principal. */

const notes = () =>
  createServer({
    name: 'notes',
    version: '1',
    tools: [
      tool({ name: 'whoami', run: (_, call) => call.client.principal?.id ?? 'nobody' }),
      tool({ name: 'delete', scopes: ['notes:write'], run: () => 'deleted' }),
      tool({
        name: 'audit',
        visible: ({ principal }) => principal?.scopes.includes('admin') === true,
        run: () => 'fine',
      }),
      tool({
        name: 'broken',
        run: () => {
          throw new Error('the reason')
        },
      }),
      tool({
        name: 'region',
        input: {
          type: 'object',
          properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
        },
        run: ({ region = '' }) => region,
      }),
      tool({
        name: 'polled',
        async run(_, call) {
          call.releaseStream()
          await new Promise(setImmediate)
          return 'polled'
        },
      }),
      tool({
        name: 'ask',
        async run(_, call) {
          const { sure } = await call.ask({
            sure: form({
              message: 'Sure?',
              schema: {
                type: 'object',
                properties: { yes: { type: 'boolean' } },
                required: ['yes'],
              },
            }),
          })
          return String(sure.yes)
        },
      }),
    ],
    resources: [
      resource({ uri: 'note://salaries', scopes: ['notes:read'], read: () => 'much' }),
      resource({ uri: 'note://ü/{name}', read: ({ name }) => name }),
    ],
    prompts: [prompt({ name: 'summary', scopes: ['notes:read'], build: () => 'Sum up.' })],
  })
const reader: Principal = { id: 'ada', scopes: ['notes:read'] }
const writer: Principal = { id: 'bob', scopes: ['notes:read', 'notes:write'] }
const text = (result: { content?: unknown }) => (result.content as { text: string }[])[0]?.text

for (const [principal, allowed] of [
  [reader, false],
  [writer, true],
] as const) {
  describe.each(
    matrix({
      memory: memory(notes(), { principal }),
      http: inProcessHttp(notes(), { principal }),
    }).map((cell) => [cell.name, cell] as const),
  )(`${principal.id} over %s`, (_, cell) => {
    it('calls as the principal, with its scopes', async () => {
      await using client = await cell.connect()
      expect(text(await client.callTool('whoami'))).toBe(principal.id)
      const deleted = client.callTool('delete')
      if (allowed) expect(text(await deleted)).toBe('deleted')
      else {
        const error = await deleted.catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(RpcError)
        expect(error).toMatchObject({ code: 403, data: { requiredScopes: ['notes:write'] } })
      }
      expect(JSON.stringify(await client.readResource('note://salaries'))).toContain('much')
      expect(JSON.stringify(await client.getPrompt('summary'))).toContain('Sum up.')
      await expect(client.callTool('audit')).rejects.toMatchObject({ code: -32602 })
    })
  })
}

describe.each(
  matrix({ memory: memory(notes()), http: inProcessHttp(notes()) }).map(
    (cell) => [cell.name, cell] as const,
  ),
)('without a principal over %s', (_, cell) => {
  it('requires scopes over HTTP only', async () => {
    await using client = await cell.connect()
    expect(text(await client.callTool('whoami'))).toBe('nobody')
    const deleted = client.callTool('delete')
    if (cell.transport === 'memory') expect(text(await deleted)).toBe('deleted')
    else await expect(deleted).rejects.toMatchObject({ code: 403 })
    expect(text(await client.callTool('broken'))).toMatch(
      cell.transport === 'memory' ? 'the reason' : /reference \w+/,
    )
  })

  it('elicits, resumes a released stream, and sends Mcp-Param headers', async () => {
    await using client = await cell.connect({
      elicit: () => ({ action: 'accept', content: { yes: true } }),
    })
    const elicits = cell.revision >= '2025-06-18'
    if (elicits) expect(text(await client.callTool('ask'))).toBe('true')
    expect(text(await client.callTool('polled'))).toBe('polled')
    for (const region of ['north', '', ' padded ', 'Zürich', '=?base64?=', 'a\nb'])
      expect(text(await client.callTool('region', { region }))).toBe(region)
    expect(JSON.stringify(await client.readResource('note://ü/x'))).toContain('"x"')
    await expect(client.request('no/such')).rejects.toMatchObject({ code: -32601 })
  })
})

describe('a transcript with a principal', () => {
  const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete"}}'
  const conversation = (answer: string) => `
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":*}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> ${call}
< ${answer}
> {nope
< {"jsonrpc":"2.0","error":*}
`
  const refused =
    '{"jsonrpc":"2.0","id":2,"error":{"code":403,"message":*,"data":{"requiredScopes":["notes:write"]}}}'
  const deleted =
    '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"deleted"}],"isError":false}}'

  it.each([
    ['refused', reader, refused],
    ['allowed', writer, deleted],
  ])('is %s', async (_, principal, answer) => {
    expect(
      (await playTranscript(conversation(answer), notes(), { principal })).differences,
    ).toEqual([])
    expect(
      (await play(conversation(answer), inProcessHttp(notes(), { principal }).open())).differences,
    ).toEqual([])
  })
})

it('rejects a principal that has expired, as over HTTP', async () => {
  const principal = { ...reader, expires: Date.now() - 1 }
  await expect(connect(memory(notes(), { principal }))).rejects.toThrow(
    'Unauthorized: the principal has expired',
  )
  await expect(connect(inProcessHttp(notes(), { principal }))).rejects.toThrow('Unauthorized')
  for (const times of [{ expires: 1_800_000_000 }, { expires: NaN }, { expiresAt: 1_800_000_000 }])
    for (const target of [memory, inProcessHttp])
      expect(() => target(notes(), { principal: { ...reader, ...times } })).toThrow(
        'a principal whose "expires", if it has one, is a number of milliseconds since 1970',
      )
})

it('rejects an invalid principal', () => {
  for (const principal of [
    'ada',
    { id: '', scopes: [] },
    { id: 'ada' },
    { id: 'ada', scopes: 'all' },
    null,
  ]) {
    // @ts-expect-error: these are not principals
    expect(() => memory(notes(), { principal })).toThrow(
      'an object with an "id" and an array of "scopes"',
    )
    // @ts-expect-error: these are not principals
    expect(() => inProcessHttp(notes(), { principal })).toThrow(
      'an object with an "id" and an array of "scopes"',
    )
  }
  // @ts-expect-error: there is no such option
  expect(() => memory(notes(), { principle: reader })).toThrow('principal')
})
