import { describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { type Kind } from '../../src/capture/definitions.js'
import { type CaptureRecord, type Direction, chunkRecord } from '../../src/capture/format.js'
import {
  Recording,
  encode,
  inSession,
  openSession,
  request as message,
  result as response,
} from './http-recording.js'
import { ToolSchemas } from '../../src/capture/tool-schemas.js'
import { META, handshake, request, result, schemas } from './lines.js'

/** The records of lines on stdio. */
function recordsOf(lines: readonly string[]): CaptureRecord[] {
  const offsets = { in: 0, out: 0 }
  return lines.map((line, index) => {
    const dir: Direction = line.startsWith('>') ? 'in' : 'out'
    const bytes = encode(`${line.slice(2)}\n`)
    const record = chunkRecord(dir, index, offsets[dir], bytes)
    offsets[dir] += bytes.length
    return record
  })
}

/** The names, whether the list is complete, and the rules that are broken. */
function listed(records: readonly CaptureRecord[], kind: Kind = 'tools') {
  const analysis = new Analysis(schemas)
  const rules = records
    .flatMap((record) => analysis.add(record))
    .flatMap(({ findings }) => findings.map(({ rule }) => rule))
  const { definitions } = analysis
  const { items, bytes = 0 } = definitions.listing(kind) ?? {}
  const names = [...(items?.keys() ?? [])].join(' ')
  return { names, bytes, isComplete: definitions.isComplete(kind), rules }
}

const tool = (name: string, outputSchema?: object) => ({
  name,
  inputSchema: { type: 'object' },
  ...(outputSchema === undefined ? {} : { outputSchema }),
})
const sizeOf = (...pages: readonly object[][]) =>
  pages.reduce((sum, page) => sum + JSON.stringify(page).length, 0)
const list = (id: number, cursor?: unknown) =>
  request(id, 'tools/list', cursor === undefined ? {} : { cursor })
const page = (id: number, names: readonly string[], nextCursor?: unknown) =>
  result(id, { tools: names.map((name) => tool(name)), nextCursor })
const changed = '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
const open = handshake('2025-11-25', { tools: { listChanged: true } })

describe('pages of a list', () => {
  it.each<[string, string[], string, boolean]>([
    ['in order', [list(1), page(1, ['a'], 'c'), list(2, 'c'), page(2, ['b'])], 'a b', true],
    [
      'of two lists at the same time',
      [
        list(1),
        list(2),
        page(1, ['a'], 'c'),
        page(2, ['a'], 'c'),
        list(3, 'c'),
        list(4, 'c'),
        page(3, ['b']),
        page(4, ['b']),
      ],
      'a b',
      true,
    ],
    [
      'that are requested again',
      [list(1), page(1, ['a'], 'c'), list(2, 'c'), page(2, ['b']), list(3, 'c'), page(3, ['b'])],
      'a b',
      true,
    ],
    [
      'that are requested again before the response',
      [list(1), page(1, ['a'], 'c'), list(2, 'c'), list(3, 'c'), page(3, ['b'])],
      'a b',
      true,
    ],
    ['that are missing', [list(1), page(1, ['a'], 'c')], 'a', false],
    ['with an unknown cursor', [list(1, 'c'), page(1, ['b'])], '', false],
    [
      'with another cursor',
      [list(1), page(1, ['a'], 'c'), list(2, 'd'), page(2, ['b'])],
      'a',
      false,
    ],
    [
      'with a cursor that is returned again',
      [
        list(1),
        page(1, ['a'], 'c'),
        list(2, 'c'),
        page(2, ['b'], 'c'),
        list(3, 'c'),
        page(3, ['d'], 'c'),
      ],
      'a b d',
      false,
    ],
    [
      'with an empty cursor',
      [list(1), page(1, ['a'], ''), list(2, ''), page(2, ['b'])],
      'a b',
      true,
    ],
    [
      'after a change',
      [list(1), page(1, ['a', 'b'], 'c'), changed, list(2, 'c'), page(2, ['b', 'd'])],
      'a b',
      false,
    ],
    [
      'of a list that is begun again, after a complete one',
      [list(1), page(1, ['a'], 'c'), list(2, 'c'), page(2, ['b']), list(3), page(3, ['a'], 'c')],
      'a b',
      true,
    ],
    ['of a later list', [list(1), page(1, ['a']), list(2), page(2, ['b'])], 'b', true],
  ])('%s', (_, lines, names, isComplete) => {
    const found = listed(recordsOf([...open, ...lines]))
    const pages = names.split(' ').map((name) => [tool(name)])
    const bytes = _ === 'after a change' ? sizeOf([tool('a'), tool('b')]) : sizeOf(...pages)
    expect(found).toEqual({ names, isComplete, rules: [], bytes: names === '' ? 0 : bytes })
  })

  it('have a name twice only in one list', () => {
    const twice = [list(1), page(1, ['a'], 'c'), list(2, 'c'), page(2, ['b', 'a'])]
    expect(listed(recordsOf([...open, ...twice])).rules).toEqual(['duplicate-name'])
    const unknown = [list(1, 'x'), page(1, ['b', 'b'])]
    expect(listed(recordsOf([...open, ...unknown])).rules).toEqual(['duplicate-name'])
  })

  it('belong to their session', () => {
    const recording = new Recording()
    for (const session of ['a', 'b']) openSession(recording, session)
    const exchange = (session: string, id: number, params: object, value: object) =>
      recording.call(inSession(session), message(id, 'tools/list', params), response(id, value))
    for (const session of ['a', 'b'])
      exchange(session, 1, {}, { tools: [tool('x')], nextCursor: 'c' })
    for (const session of ['a', 'b']) exchange(session, 2, { cursor: 'c' }, { tools: [tool('y')] })
    expect(listed(recording.records)).toEqual({
      names: 'x y',
      isComplete: true,
      rules: [],
      bytes: sizeOf([tool('x')], [tool('y')]),
    })
  })

  it('are in several exchanges if there is no session', () => {
    const headers = { 'MCP-Protocol-Version': '2025-11-25' }
    const pagesOf = (
      ...pages: readonly (readonly [cursor: string, names: string[], next?: string])[]
    ) => {
      const recording = new Recording()
      for (const [cursor, names, nextCursor] of pages)
        recording.call(
          headers,
          message(1, 'tools/list', cursor === '' ? {} : { cursor }),
          response(1, { tools: names.map((name) => tool(name)), nextCursor }),
        )
      const { names, isComplete, rules } = listed(recording.records)
      return [names, isComplete, ...rules]
    }
    expect(pagesOf(['', ['a'], 'c'], ['c', ['b']])).toEqual(['a b', true])
    expect(
      pagesOf(['', ['a'], 'c'], ['', ['a'], 'c'], ['c', ['b']], ['c', ['b']], ['c', ['b']]),
    ).toEqual(['a b', true])
    // Two clients, to which the server lists something else.
    expect(pagesOf(['', ['a'], 'c'], ['', ['b'], 'c'], ['c', ['b']])).toEqual(['b', false])
  })

  it('are of other kinds too', () => {
    const lines = [
      ...handshake('2025-11-25', { prompts: {} }),
      request(1, 'prompts/list'),
      result(1, { prompts: [{ name: 'p' }], nextCursor: 'c' }),
      request(2, 'prompts/list', { cursor: 'c' }),
      result(2, { prompts: [{ name: 'q' }] }),
    ]
    expect(listed(recordsOf(lines), 'prompts')).toMatchObject({ names: 'p q', isComplete: true })
    expect(listed(recordsOf(lines), 'resources').isComplete).toBe(false)
  })

  it('are followed up to a limit, so that each page takes the same time', () => {
    const lines = Array.from({ length: 502 }, (_, index) => [
      list(index + 1, index === 0 ? undefined : `c${index}`),
      page(index + 1, [`t${index}`], index === 501 ? undefined : `c${index + 1}`),
    ]).flat()
    const { names, isComplete } = listed(recordsOf([...open, ...lines]))
    expect(names.split(' ').slice(-2)).toEqual(['t498', 't499'])
    expect(isComplete).toBe(false)
  })

  it('of many clients take little memory, and those of the last ones are kept', () => {
    const analysis = new Analysis(schemas)
    const padding = 'x'.repeat(400_000)
    const calls = (session: string, from: string) => {
      const recording = new Recording()
      recording.call(inSession(session), message(9, 'tools/call', { name: 'q' }), {
        ...response(9, { content: [], structuredContent: { [from]: 1 } }),
      })
      return recording.records
    }
    const rules = (records: readonly CaptureRecord[], from: number) =>
      records
        .map((record) =>
          record.type === 'chunk' || record.type === 'event'
            ? { ...record, exchange: from }
            : record,
        )
        .flatMap((record) => analysis.add(record as CaptureRecord)) // only the exchange differs
        .flatMap(({ findings }) => findings.map(({ rule }) => rule))
    for (let session = 0; session < 60; session++) {
      const recording = new Recording()
      const schema = { type: 'object', description: padding, required: [`m${session}`] }
      recording.call(
        inSession(`s${session}`),
        message(1, 'tools/list'),
        response(1, { tools: [tool('q', schema)] }),
      )
      rules(recording.records, session)
    }
    expect(rules(calls('s59', 'm59'), 100)).toEqual([])
    expect(rules(calls('s59', 'x').slice(1), 101)).toContain('output-schema')
    // Forgotten: nothing is said about it.
    expect(rules(calls('s0', 'x').slice(1), 102)).toEqual([])
  })
})

/** A list of exactly 10,000 definitions, or of one more, on two pages. */
it.each([
  [10_000, true],
  [10_001, false],
])('a list of %i definitions: complete %s', (count, isComplete) => {
  const names = Array.from({ length: count }, (_, index) => `t${index}`)
  const lines = [
    list(1),
    page(1, names.slice(0, 5000), 'c'),
    list(2, 'c'),
    page(2, names.slice(5000)),
  ]
  const { names: kept, isComplete: isKnown } = listed(recordsOf([...open, ...lines]))
  expect(isKnown).toBe(isComplete)
  expect(kept.split(' ').length).toBe(10_000)
})

describe('validations of a capture', () => {
  /** Each validation takes 25 million steps: a quarter of the budget. */
  const many = Array.from({ length: 2000 }, (_, index) => ({ required: [`m${index}`] }))
  const costly = { type: 'object', properties: { list: { items: { anyOf: [...many, true] } } } }
  const value = { list: Array.from({ length: 500 }, () => ({})) }
  const calls = (count: number, name: string, structuredContent: object, from: number) =>
    Array.from({ length: count }, (_, index) => [
      request(from + index, 'tools/call', { name }),
      result(from + index, { content: [], structuredContent }),
    ]).flat()

  it('share a budget; the schema that exceeds it is reported once, others are still applied', () => {
    const lines = [
      ...open,
      list(1),
      result(1, {
        tools: [tool('slow', costly), tool('fast', { type: 'object', required: ['n'] })],
      }),
      ...calls(8, 'slow', value, 2),
      ...calls(1, 'fast', {}, 10),
      ...calls(2, 'slow', value, 11),
    ]
    expect(listed(recordsOf(lines)).rules).toEqual(['not-validated', 'output-schema'])
  })

  /** A pattern that takes about 5,000 steps for each class; the texts of all are different. */
  let made = 0
  const classes = (count: number) => ({ title: `${made++}`, pattern: String.raw`\p`.repeat(count) })
  /** Takes 300,000 steps. */
  const ordinary = () => ({ type: 'strin', pattern: '^[a-z]{1,5000}$' })
  const PROBLEM = [{ rule: 'invalid-schema', text: expect.stringMatching(/^type: /) as string }]

  it('may take more steps the more was read, up to a limit', () => {
    const schemas = new ToolSchemas()
    let skipped = 0
    // Each counts for 76 million steps, which may be a quarter of what is left.
    const apply = () => {
      schemas.problems(classes(15_000), () => skipped++)
      return skipped
    }
    expect(apply()).toBe(1)
    schemas.read(2_400_000)
    expect(apply()).toBe(1)
    expect(apply()).toBe(2)
    schemas.read(1_000_000_000)
    expect(apply()).toBe(2)
    expect(apply()).toBe(2)
    expect(apply()).toBe(3)
  })

  it('that are costly do not hide what others find', () => {
    const names = ['a', 'b', 'c']
    const patterns = names.map((name) => [name, { type: 'string', pattern: '^[\\w ]{1,1000}$' }])
    const normal = { type: 'object', properties: Object.fromEntries(patterns), required: ['a'] }
    const lines = [
      ...open,
      list(1),
      result(1, { tools: [tool('slow', costly), tool('normal', normal)] }),
      ...calls(4, 'slow', value, 2),
      ...calls(24, 'normal', { b: 'x' }, 6),
    ]
    const wrong = Array.from({ length: 24 }, () => 'output-schema')
    expect(listed(recordsOf(lines)).rules).toEqual(['not-validated', ...wrong])
  })

  it('of a tool that is listed again and again take no further steps', () => {
    const patterns = Array.from({ length: 10 }, (_, index) => [
      `p${index}`,
      { type: 'string', pattern: `^[\\w ]{1,${1000 - index}}$` },
    ])
    const inputSchema = { type: 'object', properties: Object.fromEntries(patterns) }
    const lists = Array.from({ length: 300 }, (_, index) => [
      list(index + 1),
      result(index + 1, { tools: [{ name: 'note', inputSchema }] }),
    ])
    expect(listed(recordsOf([...open, ...lists.flat()])).rules).toEqual([])
  })

  it('of many different tools with ordinary patterns are within the budget', () => {
    const names = ['title', 'text', 'tag', 'author', 'folder', 'place', 'reason', 'comment']
    const properties = names.map((name) => [name, { type: 'string', pattern: '^[\\w ]{1,1000}$' }])
    const tools = Array.from({ length: 500 }, (_, index) => ({
      name: `note${index}`,
      inputSchema: {
        type: 'object',
        title: `Note ${index}`,
        properties: Object.fromEntries(properties),
      },
    }))
    const lines = [...open, list(1), result(1, { tools })]
    expect(listed(recordsOf(lines)).rules).toEqual(['large-definitions'])
  })

  it('are tried again when more was read, if only little was left', () => {
    const schemas = new ToolSchemas()
    // Each of them takes a quarter of what is left.
    for (let i = 0; i < 20; i++) schemas.problems(classes(25_000), () => {})
    let skipped = 0
    const apply = () => schemas.problems(ordinary(), () => skipped++)
    expect(apply()).toEqual([])
    expect(apply()).toEqual([])
    expect(schemas.isApplicable(ordinary(), () => skipped++)).toBe(false)
    schemas.read(20_000)
    expect(apply()).toEqual(PROBLEM)
    expect(skipped).toBe(1)
  })

  it('are at most in proportion to what was read, and leave some steps for others', () => {
    const schemas = new ToolSchemas()
    // 5 million steps each.
    const wrong = { list: [...value.list.slice(0, 100), 1] }
    const schema = {
      properties: { list: { items: { type: 'object', anyOf: [...many, true] } } },
    }
    let done = 0
    let skipped = 0
    for (let i = 0; i < 1000; i++) {
      schemas.read(100)
      done += schemas.issues(schema, wrong, () => skipped++).length
    }
    expect(skipped).toBe(1)
    expect(done).toBeGreaterThan(10)
    expect(done).toBeLessThan(30)
    expect(schemas.problems(ordinary(), () => skipped++)).toEqual(PROBLEM)
    expect(skipped).toBe(1)
  })

  it('remember schemas of a few megabytes', () => {
    const schemas = new ToolSchemas()
    let skipped = 0
    const slow = classes(25_000)
    const apply = () => {
      schemas.problems({ ...slow }, () => skipped++)
      return skipped
    }
    expect(apply()).toBe(1)
    expect(apply()).toBe(1)
    for (let i = 0; i < 5; i++)
      schemas.problems({ title: `${i}`, description: 'x'.repeat(1024 * 1024) }, () => skipped++)
    expect(apply()).toBe(2)
  })

  it('report a reference to itself next to a pattern that is not supported', () => {
    const schema = { $ref: '#', properties: { a: { pattern: '^(a+)+\\1$' } } }
    const schemas = new ToolSchemas()
    expect(schemas.problems(schema, () => {})).toEqual([
      { rule: 'refused-schema', text: expect.stringContaining('refers to itself') as string },
    ])
    expect(schemas.isApplicable(schema, () => {})).toBe(false)
  })

  it('report what is wrong in a schema next to many patterns of other dialects', () => {
    const patterns = Array.from({ length: 10 }, (_, index) => [`p${index}`, { pattern: '(' }])
    const problem = { rule: 'invalid-schema', text: expect.stringMatching(/^.*type: /) as string }
    for (const properties of [
      [['a', { type: 'strin' }], ...patterns],
      [...patterns, ['a', { type: 'strin' }]],
    ])
      expect(
        new ToolSchemas().problems({ properties: Object.fromEntries(properties) }, () => {}),
      ).toEqual([problem])
  })
})

describe('definitions of a conversation', () => {
  const needs = (member: string) => ({
    type: 'object',
    properties: { [member]: {} },
    required: [member],
  })
  const call = (id: number, more: object = {}) =>
    message(id, 'tools/call', { name: 'q', arguments: {}, ...more })
  const output = (id: number, member: string) =>
    response(id, { content: [], structuredContent: { [member]: 1 } })

  it('are those that its client has listed', () => {
    const recording = new Recording()
    for (const session of ['a', 'b']) openSession(recording, session)
    const tenants = [
      ['a', 'n'],
      ['b', 's'],
    ] as const
    for (const [session, member] of tenants)
      recording.call(
        inSession(session),
        message(1, 'tools/list'),
        response(1, { tools: [tool('q', needs(member))] }),
      )
    for (const [session, member] of tenants)
      recording.call(inSession(session), call(2), output(2, member))
    expect(recording.findings()).toEqual([])
    for (const [session] of tenants) recording.call(inSession(session), call(3), output(3, 's'))
    expect(recording.findings()).toEqual(['9 output-schema n is required'])
  })

  it('are used without a session if all lists agree', () => {
    const headers = { 'MCP-Protocol-Version': '2025-11-25' }
    const recording = new Recording()
    const lists = (id: number, ...tools: readonly object[]) =>
      recording.call(headers, message(id, 'tools/list'), response(id, { tools }))
    lists(1, tool('q', needs('n')))
    lists(2, tool('other'), tool('q', needs('n')))
    recording.call(headers, call(3), output(3, 's'))
    expect(recording.findings()).toEqual(['3 output-schema n is required'])
    lists(4, tool('q', needs('s')))
    recording.call(headers, call(5), output(5, 'x'))
    expect(recording.findings()).toEqual(['3 output-schema n is required'])
  })

  it('are compared with headers in the same way', () => {
    const withHeader = (name: string) => ({
      name: 'q',
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': name } },
      },
    })
    const hints = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    const headers = (method: string, more: Record<string, string> = {}) => ({
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...more,
    })
    for (const [names, findings] of [
      [['Region'], ['2 header-mismatch Mcp-Param-Region is missing']],
      [['Region', 'Zone'], []],
    ] as const) {
      const recording = new Recording()
      for (const name of names)
        recording.call(
          headers('tools/list'),
          message(1, 'tools/list', { _meta: META }),
          response(1, { ...hints, tools: [withHeader(name)] }),
        )
      recording.call(
        headers('tools/call', { 'Mcp-Name': 'q' }),
        call(1, { _meta: META, arguments: { region: 'eu' } }),
        response(1, { resultType: 'complete', content: [] }),
      )
      expect(recording.findings()).toEqual(findings)
    }
  })

  it('are those at the time of the call', () => {
    const lines = (...between: readonly string[]) =>
      recordsOf([
        ...open,
        list(1),
        result(1, { tools: [tool('q', needs('n'))] }),
        `> ${JSON.stringify(call(2))}`,
        ...between,
        `< ${JSON.stringify(output(2, 'x'))}`,
      ])
    expect(listed(lines()).rules).toEqual(['output-schema'])
    expect(listed(lines(changed)).rules).toEqual([])
    const again = (member: string) => [
      changed,
      list(3),
      result(3, { tools: [tool('q', needs(member))] }),
    ]
    expect(listed(lines(...again('s'))).rules).toEqual([])
    expect(listed(lines(...again('n'))).rules).toEqual(['output-schema'])
  })
})

describe('progress of a request that the capture does not show', () => {
  const progressed = (progressToken: string, progress: number) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress },
  })
  const post = (recording: Recording, headers: Record<string, string>, body: object) => {
    const type = { 'Content-Type': 'application/json' }
    const exchange = recording.request('POST', { ...type, ...headers }, JSON.stringify(body))
    recording.response(exchange, 202)
  }

  it('is found only in a session that began in the capture', () => {
    const recording = new Recording()
    post(recording, inSession('before'), progressed('t', 1))
    post(recording, { 'MCP-Protocol-Version': '2025-11-25' }, progressed('t', 1))
    openSession(recording, 'a')
    post(recording, inSession('a'), progressed('t', 1))
    expect(recording.findings()).toEqual(['5 progress no request has this token'])
  })
})
