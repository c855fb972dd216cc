import { describe, expect, it } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import { parseFilter } from '../../src/capture/filter.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'
import {
  type CaptureFile,
  CaptureService,
  type CaptureState,
} from '../../src/workbench/model/capture-service.js'
import { percentile } from '../../src/workbench/model/latency.js'
import { Strings } from '../../src/workbench/model/strings.js'
import { treeOf } from '../../src/workbench/model/tree.js'
import { LANES } from '../../src/workbench/model/lanes.js'
import { CaptureBuilder, httpCapture, sampleCapture, text } from './sample.js'

const decoder = new TextDecoder()
const schemas = await loadSchemaChecks()

/** A capture in memory, in pieces of a size. */
function fileOf(content: string | Uint8Array, size = 1000): CaptureFile {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return {
    name: 'memory.ndjson',
    size: bytes.length,
    read: (start, end) => Promise.resolve(bytes.slice(start, end)),
    async *pieces() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size)
    },
  }
}

/** A service that has read a capture, and the last state that it has reported. */
async function read(file: CaptureFile) {
  const reported: { state?: CaptureState } = {}
  const service = new CaptureService(
    (state) => (reported.state = state),
    () => new Promise((resolve) => setImmediate(resolve)),
  )
  await service.load(file)
  const state = () => {
    if (reported.state === undefined) throw new Error('nothing was reported')
    return reported.state
  }
  return { service, state }
}

function omit<Value extends object>(value: Value, name: keyof Value): Partial<Value> {
  const rest: Partial<Value> = { ...value }
  delete rest[name]
  return rest
}

/** What the terminal shows of a capture. */
function rowsOf(capture: CaptureBuilder): Row[] {
  const analysis = new Analysis(schemas)
  return [...capture.records.flatMap((record) => analysis.add(record)), ...analysis.end()]
}

describe('the rows of a capture', () => {
  const capture = sampleCapture()
  const expected = rowsOf(capture)

  it.each([1, 33, 1000, 1_000_000])(
    'are those of the terminal, read in pieces of %i',
    async (size) => {
      const { service, state } = await read(fileOf(capture.toString(), size))
      expect(state()).toMatchObject({
        phase: 'ready',
        rows: expected.length,
        hasExited: true,
        unreadable: 0,
      })
      const shown = service.rows(0, 1000)
      expect(shown).toMatchObject(
        expected.map((row) => omit<Partial<Row>>(omit(row, 'findings'), 'operation')),
      )
      expect(shown.map(({ index }) => index)).toEqual(expected.map((_, index) => index))
      const findings = service
        .findings(0, 1000)
        .map(({ rule, start, end, detail }) => ({ rule, start, end, detail }))
      expect(findings).toEqual(
        expected
          .flatMap((row) => row.findings)
          .map(({ rule, start, end, detail }) => ({ rule, start, end, detail })),
      )
    },
  )

  it.each([
    'tool:search',
    'status:error',
    'finding:*',
    'finding:warning',
    'dur>50ms',
    'size<60b',
    'budget',
    '-kind:event',
    'id:9999',
    'rev:2025* dir:in',
  ])('are filtered as in the terminal: %s', async (filter) => {
    const { service, state } = await read(fileOf(capture.toString()))
    expect(service.filter(filter)).toBe('')
    await expect.poll(() => state().isFiltering).toBe(false)
    const matching = expected.flatMap((row, index) => (parseFilter(filter)(row) ? [index] : []))
    expect(service.rows(0, 1000).map(({ index }) => index)).toEqual(matching)
    expect(matching.length).toBeGreaterThan(0)
    const [first = 0] = matching
    expect(service.positionOf(first)).toBe(0)
  })

  it('link requests and responses', async () => {
    const { service } = await read(fileOf(capture.toString()))
    const rows = service.rows(0, 1000)
    const response = rows.find(({ kind, method }) => kind === 'response' && method === 'tools/list')
    const request = rows[response?.peer ?? 0]
    expect(request).toMatchObject({ kind: 'request', method: 'tools/list', peer: response?.index })
    const progress = rows.find(({ method }) => method === 'notifications/progress')
    expect(rows[progress?.peer ?? 0]).toMatchObject({ target: 'summarize', kind: 'request' })
    const unanswered = rows.find(({ kind }) => kind === 'unanswered')
    expect((await service.frame(unanswered?.index ?? 0))?.bytes.length).toBe(90)
  })

  it('have the bytes of their frames', async () => {
    const { service } = await read(fileOf(capture.toString()))
    const out = capture.records
      .flatMap((record) => (record.type === 'chunk' && record.dir === 'out' ? [record.text] : []))
      .join('')
    for (const row of service.rows(0, 1000)) {
      const detail = await service.frame(row.index)
      if (row.dir === 'out')
        expect(decoder.decode(detail?.bytes)).toBe(
          Buffer.from(out).subarray(row.start, row.end).toString(),
        )
      if (row.kind === 'event') expect(decoder.decode(detail?.bytes)).toContain('"type":"event"')
    }
    expect(await service.frame(-1)).toBeUndefined()
    expect(await service.frame(100_000)).toBeUndefined()
  })
})

describe('a capture of HTTP', () => {
  it('has the rows of the terminal', async () => {
    const expected = rowsOf(httpCapture())
    const { service } = await read(fileOf(httpCapture().toString()))
    const shown = service
      .rows(0, 1000)
      .map(({ kind, method, start, end }) => [kind, method, start, end])
    expect(shown).toEqual(
      expected.map(({ kind, method, start, end }) => [kind, method, start, end]),
    )
  })
  it('has the bytes of bodies, decoded, and the fields of events', async () => {
    const { service } = await read(fileOf(httpCapture().toString()))
    const rows = service.rows(0, 1000)
    const detailOf = async (target: string, kind: string) => {
      const row = rows.find((each) => each.target === target && each.kind === kind)
      const detail = await service.frame(row?.index ?? -1)
      if (detail?.tree === undefined) throw new Error(`no fields in ${target}`)
      return { ...detail, tree: detail.tree }
    }
    const compressed = await detailOf('small', 'response')
    expect(decoder.decode(compressed.bytes)).toContain('"text":"compressed é"')
    const { bytes, tree, peer } = await detailOf('stream', 'response')
    expect(decoder.decode(bytes)).toMatch(/^id: 1\nevent: message\ndata: \{/)
    expect(peer?.kind).toBe('request')
    const values = Array.from(tree.start, (start, node) =>
      decoder.decode(bytes.subarray(start, tree.end[node])),
    )
    expect(values).toContain('"streamed é"')
    expect(values[1]).toBe('"2.0"')
    const head = await detailOf('/mcp', 'http')
    expect(decoder.decode(head.bytes)).toContain('"event":"request"')
    expect(head.peer?.text).toContain('401 Unauthorized')
  })
  it('has lanes for logins and streams, and what was negotiated', async () => {
    const { service, state } = await read(fileOf(httpCapture().toString()))
    const { bars } = service.timeline(state().from, state().to, 100)
    const lanes = new Set(bars.map(({ lane }) => LANES[lane]))
    expect(lanes).toEqual(new Set(['auth', 'client']))
    const facts = await service.session()
    expect(facts.at(-1)).toMatchObject({ revision: '2025-11-25', server: { name: 'remote' } })
  })
})

it('a body that looks like headers is shown at once, however many there are', async () => {
  const body = 'Name: value\r\n'.repeat(10_000)
  const capture = new CaptureBuilder()
    .event('listen', { url: 'http://127.0.0.1:2/mcp', target: 'http://127.0.0.1:1/mcp' })
    .exchange(['POST', '/mcp', {}, '{}'], [200, 'OK', {}, body])
  const { service } = await read(fileOf(capture.toString()))
  for (const { index, kind } of service.rows(0, 10)) if (kind !== 'http') await service.frame(index)
  const last = service.rows(0, 10).findLast(({ dir }) => dir === 'out')
  expect(decoder.decode((await service.frame(last?.index ?? -1))?.bytes)).toBe(body)
})

describe('a capture that cannot be read', () => {
  it('says why', async () => {
    const { state } = await read(fileOf('{"type":"other"}\n'))
    expect(state()).toMatchObject({
      phase: 'failed',
      problem: expect.stringContaining('it is not a capture'),
    })
    const empty = await read(fileOf(''))
    expect(empty.state().phase).toBe('failed')
  })
  it('keeps what was read before a failure', async () => {
    const whole = fileOf(sampleCapture().toString())
    const { state } = await read({
      ...whole,
      async *pieces() {
        yield* whole.pieces()
        throw new Error('the connection is lost')
      },
    })
    expect(state()).toMatchObject({ phase: 'ready', rows: 101, problem: 'the connection is lost' })
  })
  it('is replaced by the next one', async () => {
    const { service, state } = await read(fileOf(sampleCapture().toString()))
    const slow = service.load(fileOf(sampleCapture().toString(), 1))
    await service.load(fileOf(new CaptureBuilder().handshake().toString()))
    await slow
    expect(state()).toMatchObject({ phase: 'ready', rows: 3 })
  })
})

describe('a tree', () => {
  it('has positions of bytes', () => {
    const source = '{"a":"é😀","b":[1,{"ü":null}]}'
    const tree = treeOf(source, 3)
    if (tree === undefined) throw new Error('no tree')
    const bytes = new TextEncoder().encode(`xyz${source}`)
    const value = (node: number) => decoder.decode(bytes.subarray(tree.start[node], tree.end[node]))
    expect(Array.from(tree.start, (_, node) => value(node))).toEqual([
      source,
      '"é😀"',
      '[1,{"ü":null}]',
      '1',
      '{"ü":null}',
      'null',
    ])
    expect(decoder.decode(bytes.subarray(tree.keyStart[5], tree.keyEnd[5]))).toBe('"ü"')
    expect([...tree.depth]).toEqual([0, 1, 1, 2, 2, 3])
    expect([...tree.next]).toEqual([6, 2, 6, 4, 6, 6])
  })
  it('is right far into a long text', () => {
    const source = `[${Array.from({ length: 3000 }, (_, i) => `"ä${i}"`).join(',')}]`
    const tree = treeOf(source, 0)
    const bytes = new TextEncoder().encode(source)
    expect(decoder.decode(bytes.subarray(tree?.start[3000], tree?.end[3000]))).toBe('"ä2999"')
  })
  it('does not exist for what is not JSON', () => {
    expect(treeOf('Listening', 0)).toBeUndefined()
    expect(treeOf('['.repeat(100_000), 0)).toBeUndefined()
  })
})

describe('latency', () => {
  it.each([
    [0.5, 5],
    [0.95, 10],
    [0.99, 10],
    [0.1, 1],
  ])('has the percentile %f by nearest rank', (part, expected) => {
    expect(percentile(Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), part)).toBe(expected)
  })
  it('is grouped by tool', async () => {
    const { service } = await read(fileOf(sampleCapture().toString()))
    const [first, second] = service.latency()
    expect(first).toMatchObject({ target: 'search', calls: 14, errors: 0, p50: 6e6, max: 130e6 })
    expect(second).toMatchObject({ target: 'read_note', calls: 14, errors: 3 })
    const points = service.points('tools/call', 'search')
    expect(points.duration.length).toBe(14)
    expect(service.rows(0, 1000)[points.row[0] ?? 0]).toMatchObject({
      target: 'search',
      kind: 'response',
    })
  })
  it('keeps outliers when there are too many points', async () => {
    const capture = new CaptureBuilder().handshake()
    for (let id = 1; id <= 10_000; id++)
      capture.call(id, 'add', {}, text('1'), id === 7777 ? 900 : 1)
    const { service } = await read(fileOf(capture.toString(), 1_000_000))
    const { duration, ns } = service.points('tools/call', 'add')
    expect(duration.length).toBeLessThanOrEqual(4000)
    expect(Math.max(...duration)).toBe(900e6)
    expect([...ns]).toEqual([...ns].toSorted((one, other) => one - other))
  })
})

describe('the timeline', () => {
  it('has a bar for each request, in the lane of its kind', async () => {
    const capture = new CaptureBuilder().handshake()
    capture.message('in', { id: 1, method: 'tools/call', params: { name: 'slow' } })
    capture.message('in', { id: 2, method: 'tools/call', params: { name: 'fast' } })
    capture
      .message('out', { id: 2, ...text('x') })
      .message('out', { id: 1, error: { code: -32603, message: 'x' } })
    capture.message('in', { id: 3, method: 'subscriptions/listen', params: {} })
    capture.message('in', { id: 4, method: 'tasks/get', params: { taskId: 'x' } })
    const { service, state } = await read(fileOf(capture.toString()))
    const { bars } = service.timeline(state().from, state().to, 100)
    const shown = bars.map(({ lane, track, isError, isOpen }) => [lane, track, isError, isOpen])
    expect(shown).toEqual([
      [0, 0, false, false], // initialize
      [2, 0, false, false], // initialized
      [0, 0, true, false],
      [0, 1, false, false], // at the same time
      [3, 0, false, true],
      [4, 0, false, true],
    ])
    expect(service.timeline(0, 1e6, 100).bars).toHaveLength(1)
  })
  it('counts if there are too many bars', async () => {
    const capture = new CaptureBuilder().handshake()
    for (let id = 1; id <= 3000; id++) capture.call(id, 'add', {}, text('1'), 1)
    const { service, state } = await read(fileOf(capture.toString(), 1_000_000))
    const { bars, density } = service.timeline(state().from, state().to, 50)
    expect(bars).toEqual([])
    expect(density?.[0]?.reduce((sum, each) => sum + each, 0)).toBe(3001)
  })
})

describe('the session', () => {
  it('has what was negotiated', async () => {
    const { service } = await read(fileOf(sampleCapture().toString()))
    expect(await service.session()).toEqual([
      {
        row: 1,
        method: 'initialize',
        requested: '2025-11-25',
        revision: '2025-11-25',
        client: {
          name: 'example-host',
          version: '2.1.0',
          capabilities: ['roots', 'roots.listChanged', 'elicitation'],
        },
        server: {
          name: 'notes',
          version: '1.4.2',
          capabilities: ['tools', 'tools.listChanged', 'resources', 'logging'],
        },
        instructions: 'Search before you read.',
      },
    ])
  })
  it('has what a stateless request says', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
    }
    const capture = new CaptureBuilder().message('in', {
      id: 1,
      method: 'tools/list',
      params: { _meta: meta },
    })
    const { service } = await read(fileOf(capture.toString()))
    expect(await service.session()).toMatchObject([
      {
        method: 'tools/list',
        revision: '2026-07-28',
        client: { name: 'c', capabilities: ['sampling'] },
        server: undefined,
      },
    ])
  })
})

describe('texts', () => {
  it('are kept up to a number of bytes, and what exceeds it is counted', () => {
    const strings = new Strings(3 * 1024 * 1024)
    const long = 'é'.repeat(10_000)
    const kept = Array.from({ length: 400 }, () => strings.add(long))
    expect(strings.get(kept[0] ?? 0)).toBe(long)
    expect(strings.lost).toBeGreaterThan(100)
    expect(kept.filter((each) => strings.get(each) === long).length).toBe(400 - strings.lost)
    expect(strings.get(strings.intern('tools/call'))).toBe('tools/call')
  })
})
