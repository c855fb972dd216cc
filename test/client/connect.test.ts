import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { onStillClock } from '../clock.js'
import {
  ConnectionError,
  type Target,
  TimeoutError,
  connect,
  memory,
  stdio,
} from '../../src/client.js'
import type { Channel } from '../../src/jsonrpc/channel.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'
import { richServer } from '../server/rich-server.js'

interface Asked {
  id?: number
  method: string
  params?: {
    _meta?: Record<string, unknown>
    cursor?: string
    requestId?: number
    protocolVersion?: string
    reason?: string
  }
}

/** A server by hand: `serve` is called for every message and may send anything. */
function scripted(
  serve: (asked: Asked, server: Channel, opened: number) => void,
): Target & { opened: number; asked: Asked[] } {
  const target = {
    opened: 0,
    asked: [] as Asked[],
    open() {
      const [client, server] = memoryChannels()
      hostileServers.add(client).add(server)
      const opened = ++target.opened
      server.receive({
        frame(frame) {
          const asked = JSON.parse(frame) as Asked
          target.asked.push(asked)
          serve(asked, server, opened)
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    },
  }
  return target
}

const answer = (server: Channel, { id }: Asked, result: unknown) =>
  server.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
const refuse = (server: Channel, { id }: Asked, code: number, data?: unknown) =>
  server.send(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no', data } }))
const opened = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'old', version: '1' },
}

const discoverResult = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: {},
  ttlMs: 0,
  cacheScope: 'private',
}

/** A server that only knows the handshake; `discover` is what it does with the probe. */
const legacy = (
  discover: (asked: Asked, server: Channel, opened: number) => void,
  then: (asked: Asked, server: Channel) => void = () => {},
) =>
  scripted((asked, server, count) => {
    if (asked.method === 'server/discover') discover(asked, server, count)
    else if (asked.method === 'initialize') answer(server, asked, opened)
    else then(asked, server)
  })

describe('finding the revision', () => {
  it('sends server/discover first, and the revision in _meta of every request', async () => {
    const target = scripted((asked, server) => {
      if (asked.method === 'server/discover')
        answer(server, asked, {
          resultType: 'complete',
          supportedVersions: ['2026-07-28', '2099-01-01'],
          capabilities: {},
          instructions: 'Hi',
          ttlMs: 0,
          cacheScope: 'private',
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'new', version: '2' } },
        })
      else answer(server, asked, { resultType: 'complete', content: [] })
    })
    const client = await connect(target, {
      info: { name: 'me', version: '3' },
      capabilities: { roots: {} },
    })
    expect([client.revision, client.server, client.instructions]).toEqual([
      '2026-07-28',
      { name: 'new', version: '2' },
      'Hi',
    ])
    await client.request('tools/call', {
      name: 'x',
      arguments: {},
      _meta: { 'example.com/own': 1 },
    })
    expect(target.asked.map(({ params }) => params?._meta)).toEqual([
      {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'me', version: '3' },
        'io.modelcontextprotocol/clientCapabilities': { roots: {} },
      },
      {
        'example.com/own': 1,
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'me', version: '3' },
        'io.modelcontextprotocol/clientCapabilities': { roots: {} },
      },
    ])
    await client.close()
  })

  it.each([
    ['method not found', (asked: Asked, server: Channel) => refuse(server, asked, -32601)],
    ['invalid params', (asked: Asked, server: Channel) => refuse(server, asked, -32602)],
    ['not initialized', (asked: Asked, server: Channel) => refuse(server, asked, -32002)],
    ['an error of its own', (asked: Asked, server: Channel) => refuse(server, asked, -32000)],
    [
      'a result of another kind',
      (asked: Asked, server: Channel) => answer(server, asked, { hello: 1 }),
    ],
    [
      'a result that is no object',
      (asked: Asked, server: Channel) => answer(server, asked, 'hello'),
    ],
    ['silence', () => {}],
  ])('initializes after %s to server/discover, over the same connection', async (_, discover) => {
    const target = legacy(discover)
    const client = await connect(target, { probeTimeout: 20 })
    expect([client.revision, client.server?.name, target.opened]).toEqual(['2025-11-25', 'old', 1])
    expect(target.asked.map(({ method }) => method)).toEqual(
      expect.arrayContaining(['server/discover', 'initialize', 'notifications/initialized']),
    )
    await client.close()
  })

  it('sends no revision in _meta after initialize', async () => {
    const target = legacy(
      (asked, server) => refuse(server, asked, -32601),
      (asked, server) => asked.id !== undefined && answer(server, asked, { tools: [] }),
    )
    const client = await connect(target)
    await client.request('tools/list')
    expect(target.asked.at(-1)).toEqual({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
    await client.close()
  })

  it('starts the server again only if server/discover has ended it', async () => {
    const target = legacy((_asked, server) => void server.close())
    const client = await connect(target)
    expect([client.revision, target.opened]).toEqual(['2025-11-25', 2])
    expect(target.asked.filter(({ method }) => method === 'server/discover')).toHaveLength(1)
    await client.close()
  })

  it('remembers how a target was opened', async () => {
    const target = legacy((asked, server) => refuse(server, asked, -32601))
    await (await connect(target)).close()
    await (await connect(target)).close()
    expect(target.asked.filter(({ method }) => method === 'server/discover')).toHaveLength(1)
  })

  it('ignores a response to server/discover after initialize was accepted', async () => {
    const reports: LogEntry[] = []
    let late = () => {}
    const target = legacy(
      (asked, server) =>
        (late = () =>
          answer(server, asked, { supportedVersions: ['2026-07-28'], capabilities: {} })),
      (asked, server) => {
        if (asked.method !== 'tools/list') return
        late()
        answer(server, asked, { tools: [] })
      },
    )
    const client = await connect(target, {
      probeTimeout: 5,
      report: (report) => reports.push(report),
    })
    await client.request('tools/list')
    expect(client.revision).toBe('2025-11-25')
    expect(reports).toMatchObject([
      { level: 'debug', message: 'A response with an unknown id was ignored' },
    ])
    await client.close()
  })

  it('does not fall back from a server that responds with a modern error', async () => {
    const target = scripted((asked, server) =>
      refuse(server, asked, -32022, { supported: ['2099-01-01'], requested: '2026-07-28' }),
    )
    await expect(connect(target)).rejects.toThrow(
      'The server and this client have no protocol revision in common: it serves 2099-01-01',
    )
    expect(target.asked).toHaveLength(1)
  })

  it.each([
    ['requires a capability', -32021],
    ['misses a header', -32020],
  ])('shows the error of a modern server that %s', async (_, code) => {
    const target = scripted((asked, server) =>
      refuse(server, asked, code, { requiredCapabilities: { roots: {} } }),
    )
    await expect(connect(target)).rejects.toThrow(
      `The server responded to server/discover with error ${code}: no {"requiredCapabilities":{"roots":{}}}`,
    )
    expect(target.asked.map(({ method }) => method)).toEqual(['server/discover'])
  })

  it('does not fall back from a DiscoverResult without a common revision', async () => {
    const target = scripted((asked, server) =>
      answer(server, asked, { ...discoverResult, supportedVersions: ['2099-01-01'] }),
    )
    await expect(connect(target)).rejects.toThrow(
      'no protocol revision in common: it serves 2099-01-01',
    )
    expect(target.asked).toHaveLength(1)
  })

  it('accepts an older revision from initialize, and rejects an unknown one', async () => {
    const old = (protocolVersion: string) =>
      scripted((asked, server) =>
        asked.method === 'initialize'
          ? answer(server, asked, { ...opened, protocolVersion })
          : asked.id !== undefined && refuse(server, asked, -32601),
      )
    const client = await connect(old('2024-11-05'))
    expect(client.revision).toBe('2024-11-05')
    await client.close()
    await expect(connect(old('1999-01-01'))).rejects.toThrow(
      'with protocol revision "1999-01-01", which this client does not support',
    )
    await expect(connect(old('2024-11-05'), { revision: '2025-06-18' })).rejects.toThrow(
      'which is not the requested one',
    )
  })

  it('accepts only the given revision', async () => {
    for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']) {
      const client = await connect(memory(richServer()), { revision })
      expect(client.revision).toBe(revision)
      await client.close()
    }
    await expect(connect(memory(richServer()), { revision: '1999-01-01' })).rejects.toThrow(
      'Unknown protocol revision "1999-01-01"; expected one of 2024-11-05',
    )
    await expect(
      connect(
        legacy((asked, server) => refuse(server, asked, -32601)),
        { revision: '2026-07-28' },
      ),
    ).rejects.toThrow('The server does not serve 2026-07-28')
  })

  it('is aborted by its signal', async () => {
    const controller = new AbortController()
    const pending = connect(
      scripted(() => controller.abort(new Error('never mind'))),
      { signal: controller.signal },
    )
    await expect(pending).rejects.toThrow('never mind')
  })

  it('reports why a server cannot be started', async () => {
    await expect(connect(stdio('no\0such'))).rejects.toThrow(
      'The target could not be opened: The argument',
    )
  })

  it('says how to pass a command with its arguments', async () => {
    const usage = "stdio(command, args, options), such as stdio('node', ['server.mjs'])"
    // @ts-expect-error: as StdioClientTransport of the official SDK takes them
    expect(() => stdio({ command: 'node', args: ['server.mjs'] })).toThrow(usage)
    // @ts-expect-error: not an array
    expect(() => stdio('node', 'server.mjs')).toThrow(usage)
    await expect(connect(stdio('node no-such.mjs', ['-v']))).rejects.toThrow(
      'Separate the command and its arguments: stdio("node", ["no-such.mjs","-v"])',
    )
    for (const command of ['no-such-command', '/no such/command'])
      await expect(connect(stdio(command))).rejects.toThrow('Use an absolute path')
  })

  it('rejects with a ConnectionError when the server does not respond', async () => {
    const error: unknown = await connect(
      scripted(() => {}),
      { probeTimeout: 5, timeout: 10 },
    ).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({
      message: 'No response within 10 ms to initialize',
      cause: expect.any(TimeoutError) as unknown,
    })
  })
})

describe('a server that is slow to start', () => {
  /** Reads nothing until it has been sent a certain message, then answers all of them. */
  const starting = (
    until: string,
    serve: (asked: Asked, server: Channel, opened: number) => void,
  ) => {
    const unread: Asked[] = []
    let started = false
    return scripted((asked, server, count) => {
      unread.push(asked)
      started ||= asked.method === until
      if (started) for (const each of unread.splice(0)) serve(each, server, count)
    })
  }
  /** Discovers, and does with all else what `then` says. */
  const modern =
    (then: (asked: Asked, server: Channel, opened: number) => void) =>
    (asked: Asked, server: Channel, count: number) => {
      if (asked.method === 'server/discover') answer(server, asked, discoverResult)
      else if (asked.method === 'tools/list')
        answer(server, asked, { resultType: 'complete', tools: [] })
      else then(asked, server, count)
    }
  const refuseRequests = (asked: Asked, server: Channel) =>
    asked.id !== undefined && refuse(server, asked, -32601)
  const methods = ({ asked }: { asked: Asked[] }) => asked.map(({ method }) => method)
  const HASTY = { probeTimeout: 5, timeout: 20_000 }

  it('is sent no initialize while it starts', async () => {
    const target = starting('ping', modern(refuseRequests))
    const client = await connect(target, { probeTimeout: 20 })
    expect([client.revision, target.opened]).toEqual(['2026-07-28', 1])
    expect(methods(target)).toEqual(['server/discover', 'ping'])
    await client.close()
  })

  it.each([
    ['method not found', -32601],
    ['unsupported version', -32022],
    ['an error of its own', 0],
  ])('is modern if it answers server/discover late, and initialize with %s', async (_, code) => {
    const target = starting(
      'initialize',
      modern((asked, server) => asked.id !== undefined && refuse(server, asked, code)),
    )
    const client = await connect(target, HASTY)
    await client.request('tools/list')
    expect([client.revision, target.opened]).toEqual(['2026-07-28', 1])
    expect(target.asked.at(-1)?.params?._meta).toMatchObject({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    })
    await client.close()
  })

  it.each([
    ['it refuses initialize', (asked: Asked, server: Channel) => refuse(server, asked, -32600)],
    [
      'it refuses initialize as a modern server does',
      (asked: Asked, server: Channel) => refuse(server, asked, -32022),
    ],
  ])('is modern even if it answers server/discover after %s', async (_, refuseInitialize) => {
    let discover: Asked | undefined
    const target = scripted((asked, server) => {
      if (asked.method === 'server/discover') discover = asked
      if (asked.method !== 'initialize') return
      refuseInitialize(asked, server)
      if (discover !== undefined) answer(server, discover, discoverResult)
    })
    const client = await connect(target, { probeTimeout: 50 })
    expect(client.revision).toBe('2026-07-28')
    await client.close()
  })

  it('is modern if it responds late to server/discover, and never to initialize', async () => {
    const target = starting(
      'initialize',
      modern(() => {}),
    )
    const client = await connect(target, HASTY)
    expect(client.revision).toBe('2026-07-28')
    expect(methods(target)).not.toContain('notifications/initialized')
    await client.close()
  })

  it('has a handshake revision once it has accepted initialize, even if it is modern too', async () => {
    const target = starting(
      'initialize',
      modern((asked, server) => asked.method === 'initialize' && answer(server, asked, opened)),
    )
    const client = await connect(target, HASTY)
    await client.request('tools/list')
    expect([client.revision, target.opened]).toEqual(['2025-11-25', 1])
    expect(target.asked.at(-1)?.params).toBeUndefined()
    await client.close()
  })

  it('is modern if a late error says so', async () => {
    const target = starting('initialize', (asked, server) => {
      if (asked.id !== undefined) refuse(server, asked, -32022, { supported: ['2099-01-01'] })
    })
    await expect(connect(target, HASTY)).rejects.toThrow(
      'no protocol revision in common: it serves 2099-01-01',
    )
  })

  it('is legacy if it responds to ping only', async () => {
    const target = legacy(
      () => {},
      (asked, server) => asked.method === 'ping' && answer(server, asked, {}),
    )
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const connecting = connect(target, { probeTimeout: 1000 })
    await vi.advanceTimersByTimeAsync(1000)
    vi.useRealTimers()
    const client = await connecting
    expect(client.revision).toBe('2025-11-25')
    expect(methods(target).slice(0, 3)).toEqual(['server/discover', 'ping', 'initialize'])
    await client.close()
  })

  it('is started again as a modern server if initialize has ended it', async () => {
    const target = starting(
      'initialize',
      modern(
        (asked, server, count) =>
          asked.method === 'initialize' && count === 1 && void server.close(),
      ),
    )
    const client = await connect(target, HASTY)
    expect([client.revision, target.opened]).toEqual(['2026-07-28', 2])
    expect(methods(target).filter((method) => method === 'initialize')).toHaveLength(1)
    await client.close()
  })

  it('is not started again before the first process has exited', async () => {
    const events: string[] = []
    const target = legacy((_asked, server) => void server.close())
    const watched: Target = {
      open() {
        events.push('open')
        const channel = target.open()
        const close = channel.close.bind(channel)
        channel.close = async () => {
          await close()
          await new Promise((resolve) => setImmediate(resolve))
          events.push('closed')
        }
        return channel
      },
    }
    const client = await connect(watched)
    expect(events).toEqual(['open', 'closed', 'open'])
    await client.close()
  })

  it('has its error reported if it refuses both', async () => {
    const target = scripted(
      (asked, server) =>
        asked.id !== undefined && refuse(server, asked, -32603, { why: 'no license' }),
    )
    await expect(connect(target)).rejects.toThrow(
      'The server responded to initialize with error -32603: no {"why":"no license"}',
    )
  })

  it('as a process that responds only after its second message', async () => {
    const target = stdio(process.execPath, [
      fileURLToPath(new URL('servers/late.mjs', import.meta.url)),
    ])
    const client = await connect(target, { probeTimeout: 20, timeout: 20_000 })
    expect([client.revision, client.server?.name]).toEqual(['2026-07-28', 'late'])
    expect(await client.callTool('x')).toMatchObject({ content: [{ text: 'hello' }] })
    await client.close()
  })
})

describe('a connected client', () => {
  const serving = (then: (asked: Asked, server: Channel) => void) =>
    legacy((asked, server) => refuse(server, asked, -32601), then)

  it('follows cursors, and detects cycles', async () => {
    const page = (asked: Asked, server: Channel) => {
      const cursor = Number(asked.params?.cursor ?? 0)
      answer(server, asked, {
        tools: [{ name: `t${cursor}`, inputSchema: { type: 'object' } }],
        ...(cursor < 2 ? { nextCursor: String(cursor + 1) } : {}),
      })
    }
    const client = await connect(
      serving((asked, server) => asked.method === 'tools/list' && page(asked, server)),
    )
    const names: string[] = []
    for await (const { name } of client.tools()) names.push(name)
    expect(names).toEqual(['t0', 't1', 't2'])
    await client.close()
    const circle = await connect(
      serving(
        (asked, server) =>
          asked.method === 'tools/list' && answer(server, asked, { tools: [], nextCursor: 'same' }),
      ),
    )
    await expect(
      circle
        .tools()
        .next()
        .then(() => circle.tools().next()),
    ).rejects.toThrow('tools/list does not end: the cursor "same" was returned twice')
    await circle.close()
  })

  it('detects longer cycles, and endless lists', async () => {
    const paged = (cursorOf: (page: number) => string) => {
      let page = 0
      return serving((asked, server) => {
        if (asked.method === 'tools/list')
          answer(server, asked, { tools: [], nextCursor: cursorOf(page++) })
      })
    }
    const circle = paged((page) => `c${page < 5 ? page : 5 + (page % 7)}`)
    const first = await connect(circle)
    await expect(first.tools().next()).rejects.toThrow(
      /^tools\/list does not end: the cursor "c\d+" was returned twice$/,
    )
    expect(circle.asked.length).toBeLessThan(40)
    await first.close()
    const endless = await connect(paged(String))
    await expect(endless.tools().next()).rejects.toThrow(
      'tools/list does not end: the server returned more than 10000 pages',
    )
    await endless.close()
  })

  it('extends its timeout on progress, up to maxTimeout, and reports which one expired', () =>
    onStillClock(async (pass) => {
      const timers: ReturnType<typeof setInterval>[] = []
      const working = serving((asked, server) => {
        if (asked.method !== 'tools/call') return
        const { progressToken } = asked.params?._meta ?? {}
        let progress = 0
        const params = () => ({ progressToken, progress: ++progress })
        timers.push(
          setInterval(
            () =>
              server.send(
                JSON.stringify({
                  jsonrpc: '2.0',
                  method: 'notifications/progress',
                  params: params(),
                }),
              ),
            10,
          ),
        )
      })
      const client = await connect(working)
      const seen: number[] = []
      const capped = client.callTool(
        'x',
        {},
        { timeout: 200, maxTimeout: 400, onProgress: ({ progress }) => seen.push(progress) },
      )
      await Promise.all([
        expect(capped).rejects.toThrow('No response within 400 ms in total to tools/call'),
        pass(400),
      ])
      expect(seen.length).toBeGreaterThan(2)
      expect(working.asked.at(-1)).toMatchObject({
        method: 'notifications/cancelled',
        params: { requestId: 3, reason: 'No response within 400 ms in total to tools/call' },
      })
      timers.forEach(clearInterval)
      const unheard = client.callTool('x', {}, { timeout: 20 })
      await Promise.all([
        expect(unheard).rejects.toThrow('No response within 20 ms to tools/call'),
        pass(20),
      ])
      timers.forEach(clearInterval)
      const stopping = client.callTool(
        'x',
        {},
        {
          timeout: 100,
          onProgress: ({ progress }) => progress === 2 && timers.forEach(clearInterval),
        },
      )
      await Promise.all([
        expect(stopping).rejects.toThrow(
          'No response within 100 ms of its last progress to tools/call',
        ),
        pass(120),
      ])
      await client.close()
    }))

  it('reports invalid messages and never responds to them', async () => {
    const reports: LogEntry[] = []
    const target = serving((asked, server) => {
      if (asked.method !== 'tools/list') return
      server.send('Listening on stdio')
      server.send('{"jsonrpc":"1.0","id":9,"method":"x"}')
      server.send('{"jsonrpc":"2.0","id":99,"result":{}}')
      answer(server, asked, { tools: [] })
    })
    const client = await connect(target, { report: (report) => reports.push(report) })
    await client.request('tools/list')
    expect(reports.map(({ message }) => message)).toEqual([
      'Parse error: unexpected "L" at position 0',
      'Invalid Request: "jsonrpc" must be "2.0"',
      'A response with an unknown id was ignored',
    ])
    expect(target.asked.at(-1)?.method).toBe('tools/list')
    await client.close()
  })

  it('calls a listener for notifications until it is removed', async () => {
    const target = serving((asked, server) => {
      if (asked.method !== 'tools/list') return
      server.send(
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
      )
      answer(server, asked, { tools: [] })
    })
    const client = await connect(target)
    const heard: unknown[] = []
    const stop = client.on('notifications/message', (params) => heard.push(params))
    await client.request('tools/list')
    stop()
    await client.request('tools/list')
    expect(heard).toEqual([{ level: 'info', data: 'x' }])
    await client.close()
  })

  it('responds to ping, and rejects unknown methods', async () => {
    const answers: unknown[] = []
    const target = scripted((asked, server) => {
      if (asked.method === 'server/discover') refuse(server, asked, -32601)
      else if (asked.method === 'initialize') answer(server, asked, opened)
      else if (asked.method === 'tools/list') {
        server.send('{"jsonrpc":"2.0","id":"p","method":"ping"}')
        server.send('{"jsonrpc":"2.0","id":"r","method":"roots/list"}')
        answer(server, asked, { tools: [] })
      } else if ((asked.method as string | undefined) === undefined) answers.push(asked)
    })
    const client = await connect(target)
    await client.request('tools/list')
    await expect.poll(() => answers.length).toBe(2)
    await client.close()
    expect(answers).toEqual([
      { jsonrpc: '2.0', id: 'p', result: {} },
      { jsonrpc: '2.0', id: 'r', error: { code: -32601, message: 'Method not found: roots/list' } },
    ])
  })

  it.each([
    [
      'an unknown kind of result',
      { resultType: 'surprise' },
      'The response to tools/call has the unknown resultType "surprise"',
    ],
    [
      'a question without one',
      { resultType: 'input_required' },
      'The response to tools/call needs input, but has neither',
    ],
    [
      'a question that nobody answers',
      {
        resultType: 'input_required',
        inputRequests: { folders: { method: 'roots/list', params: {} } },
      },
      'tools/call needs input that this client cannot give: "folders" (roots/list)',
    ],
    [
      'endless questions',
      { resultType: 'input_required', requestState: 'again' },
      'tools/call does not complete: it has needed input 20 times',
    ],
    ['no content', { resultType: 'complete' }, 'The result of the tool x has no "content"'],
    ['no object', 5, 'The response to tools/call is not an object'],
  ])('refuses %s', async (_, result, message) => {
    const modern = scripted((asked, server) => {
      const found = {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: {},
        ttlMs: 0,
        cacheScope: 'private',
      }
      answer(server, asked, asked.method === 'server/discover' ? found : result)
    })
    const client = await connect(modern)
    await expect(client.callTool('x')).rejects.toThrow(message)
    await client.close()
  })

  it('ignores resultType in handshake revisions', async () => {
    const client = await connect(
      serving(
        (asked, server) =>
          asked.method === 'tools/call' &&
          answer(server, asked, { content: [], resultType: 'mine' }),
      ),
    )
    expect(await client.callTool('x')).toEqual({ content: [], resultType: 'mine' })
    await client.close()
  })

  it('accepts responses in a batch if the revision has batches', async () => {
    const target = scripted((asked, server) => {
      if (asked.method === 'initialize')
        answer(server, asked, { ...opened, protocolVersion: '2025-03-26' })
      else if (asked.id !== undefined)
        server.send(JSON.stringify([{ jsonrpc: '2.0', id: asked.id, result: { tools: [] } }]))
    })
    const client = await connect(target, { revision: '2025-03-26' })
    expect(await client.request('tools/list')).toEqual({ tools: [] })
    await client.close()
  })

  it.each([
    [
      'a cursor that is not a string',
      { tools: [], nextCursor: {} },
      'has a "nextCursor" that is not a string',
    ],
    ['what is no tool', { tools: [null] }, 'has an item without a name'],
    ['no array', {}, 'has no array "tools"'],
  ])('refuses a list with %s', async (_, result, message) => {
    const client = await connect(
      serving((asked, server) => asked.method === 'tools/list' && answer(server, asked, result)),
    )
    await expect(client.tools().next()).rejects.toThrow(message)
    await client.close()
  })

  it('rejects pending calls when the server disconnects', async () => {
    const client = await connect(
      serving((asked, server) => asked.method === 'tools/call' && void server.close()),
    )
    await expect(client.callTool('x')).rejects.toThrow('The connection is closed')
  })
})
