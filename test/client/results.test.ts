import { type } from 'arktype'
import { describe, expect, expectTypeOf, it } from 'vitest'
import * as v from 'valibot'
import * as z from 'zod'
import { InvalidResultError, connect, memory } from '../../src/client.js'
import { createServer, tool } from '../../src/index.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { scriptedServer } from './scripted-server.js'

const number = { type: 'number' } as const
const sum = { type: 'object', properties: { sum: number }, required: ['sum'] } as const
const server = createServer({
  name: 'calculator',
  version: '1.0.0',
  tools: [
    tool({
      name: 'add',
      input: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
      output: sum,
      run: ({ a, b }) => ({ sum: a + b }),
    }),
    tool({
      name: 'fail',
      output: sum,
      run(): { sum: number } {
        throw new Error('As planned')
      },
    }),
  ],
})

describe('callTool with output', () => {
  it.each(revisions.map(({ id }) => id))('is validated and typed in %s', async (revision) => {
    await using client = await connect(memory(server), { revision })
    const result = await client.callTool('add', { a: 1, b: 2 }, { output: sum })
    if (result.isError === true) throw new Error('failed')
    expectTypeOf(result.structuredContent).toEqualTypeOf<{ sum: number }>()
    expect(result.structuredContent).toEqual({ sum: 3 })
    expect(result.content).toHaveLength(1)
  })

  it('takes schemas of zod, valibot and arktype, with what they convert', async () => {
    await using client = await connect(memory(server))
    const args = { a: 1, b: 2 }
    const converted = z.object({ sum: z.number().transform((value) => `= ${value}`) })
    const zod = await client.callTool('add', args, { output: converted })
    if (zod.isError !== true) expectTypeOf(zod.structuredContent.sum).toEqualTypeOf<string>()
    expect(zod.structuredContent).toEqual({ sum: '= 3' })
    // Valibot provides no JSON Schema by itself; none is needed here.
    const valibot = await client.callTool('add', args, { output: v.object({ sum: v.number() }) })
    expect(valibot.structuredContent).toEqual({ sum: 3 })
    const arktype = await client.callTool('add', args, { output: type({ sum: 'number' }) })
    expect(arktype.structuredContent).toEqual({ sum: 3 })
  })

  it('rejects with the result and the issues if it does not fit', async () => {
    await using client = await connect(memory(server))
    const output = z.object({ sum: z.string() })
    const error: unknown = await client
      .callTool('add', { a: 1, b: 2 }, { output })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(InvalidResultError)
    expect(error).toMatchObject({
      code: 'INVALID_RESULT',
      result: { structuredContent: { sum: 3 } },
      issues: [{ path: expect.stringContaining('sum') as string }],
    })
  })

  it('leaves a failed result as it is', async () => {
    await using client = await connect(memory(server))
    const result = await client.callTool('fail', {}, { output: sum })
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: 'Tool fail failed: As planned' }],
    })
  })

  it('refuses a schema that is not valid before the tool is called', async () => {
    const scripted = scriptedServer({ serve: () => false })
    await using client = await connect(scripted)
    const output = { type: 'object', properties: { a: { type: 'text' } } } as const
    await expect(client.callTool('x', {}, { output })).rejects.toThrow('callTool: "output"')
    expect(scripted.of('tools/call')).toEqual([])
  })

  it('rejects if there is neither structured content nor JSON', async () => {
    for (const content of [[], [{ type: 'text', text: 'hello' }]]) {
      const scripted = scriptedServer({
        serve: (asked, end) =>
          asked.method === 'tools/call' ? (end.answer(asked, { content }), true) : false,
      })
      await using client = await connect(scripted)
      await expect(client.callTool('x', {}, { output: sum })).rejects.toMatchObject({
        code: 'INVALID_RESULT',
        result: { content },
      })
    }
  })
})

describe('validateResults', () => {
  /** A server whose tool `add` has an output schema, and gives a result. */
  function giving(result: object, outputSchema: unknown = sum, revision = '2026-07-28') {
    const given = { result, outputSchema }
    const scripted = scriptedServer({
      revision,
      serve(asked, end) {
        if (asked.method === 'tools/list')
          end.answer(asked, {
            tools: [
              { name: 'add', inputSchema: { type: 'object' }, outputSchema: given.outputSchema },
              { name: 'plain', inputSchema: { type: 'object' } },
            ],
          })
        else if (asked.method === 'tools/call') end.answer(asked, { content: [], ...given.result })
        else return false
        return true
      },
    })
    return { scripted, given }
  }

  it('lists the tools once, and checks each result by the schema of its tool', async () => {
    const { scripted, given } = giving({ structuredContent: { sum: 1 } })
    await using client = await connect(scripted, { validateResults: true })
    expect(await client.callTool('add')).toMatchObject({ structuredContent: { sum: 1 } })
    given.result = { structuredContent: { sum: 'one' } }
    await expect(client.callTool('add')).rejects.toMatchObject({
      code: 'INVALID_RESULT',
      result: given.result,
    })
    given.result = {}
    await expect(client.callTool('add')).rejects.toMatchObject({ code: 'INVALID_RESULT' })
    given.result = { isError: true }
    expect(await client.callTool('add')).toMatchObject({ isError: true })
    given.result = { structuredContent: 'anything' }
    await client.callTool('plain')
    await client.callTool('unknown')
    expect(scripted.of('tools/list')).toHaveLength(1)
    // New schemas after a change.
    given.outputSchema = { type: 'string' }
    scripted.server.notify('notifications/tools/list_changed')
    await client.request('tools/list')
    await client.callTool('add')
    expect(scripted.of('tools/list')).toHaveLength(3)
  })

  it('is off by default, and has no meaning in a revision without structured content', async () => {
    const wrong = { structuredContent: { sum: 'one' } }
    const { scripted } = giving(wrong)
    await using client = await connect(scripted)
    expect(await client.callTool('add')).toMatchObject(wrong)
    const older = giving(wrong, sum, '2025-03-26')
    await using other = await connect(older.scripted, { validateResults: true })
    expect(await other.callTool('add')).toMatchObject(wrong)
    expect([...scripted.of('tools/list'), ...older.scripted.of('tools/list')]).toEqual([])
  })

  it.each([
    ['no object', 7, 'is not an object'],
    ['an unknown type', { type: 'text' }, 'is not valid: type: must be one of '],
    ['a reference to nowhere', { $ref: '#/nowhere' }, 'is not valid: $ref: '],
    [
      'a fake of a Standard Schema',
      { '~standard': { version: 1 }, type: 'nonsense' },
      'is not valid: type: ',
    ],
    [
      'a tuple of draft-07',
      { type: 'object', properties: { sum: { items: [{ type: 'number' }] } } },
      'is not valid: properties/sum/items: must be a schema; for a tuple use prefixItems',
    ],
    ['types that repeat', { type: ['object', 'object'] }, 'is not valid: type: must not have'],
    ['a long $id', { $id: 'i'.repeat(2000) }, 'is not valid: $id: must be at most 1000 '],
  ])('skips the validation by a schema that cannot be used, and says so: %s', async (...row) => {
    const [, outputSchema, problem] = row
    const { scripted } = giving({ structuredContent: { sum: 1 } }, outputSchema)
    const reports: LogEntry[] = []
    await using client = await connect(scripted, {
      validateResults: true,
      report(entry) {
        reports.push(entry)
        throw new Error('a report that fails')
      },
    })
    const result = await client.callTool('add')
    expect(result).toMatchObject({ structuredContent: { sum: 1 } })
    if (outputSchema !== 7) await client.callTool('add')
    expect(reports).toMatchObject([
      {
        level: 'warning',
        message: expect.stringContaining(
          `The results of the tool add are not validated: its output schema ${problem}`,
        ),
      },
    ])
  })

  it('rejects before the call if the tools cannot be listed', async () => {
    const scripted = scriptedServer({
      serve: (asked, end) =>
        asked.method === 'tools/list' ? (end.refuse(asked, -32603), true) : false,
    })
    await using client = await connect(scripted, { validateResults: true })
    await expect(client.callTool('add')).rejects.toMatchObject({ code: -32603 })
    expect(scripted.of('tools/call')).toEqual([])
  })
})
