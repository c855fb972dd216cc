import {
  type IncomingMessage,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { type Listening, listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { type Checked, FAULTY, checkCommand, checkUrl } from './live.js'

/** Without it, nothing else can be probed. */
const OPEN = 'initialize 2025-11-25'

describe('a server on stdio', () => {
  it('without faults has no findings, and only its read-only tool is called', async () => {
    const { rules, revisions, server, probes, stderr, definitions } = await checkCommand([
      process.execPath,
      FAULTY,
    ])
    expect(rules).toEqual([])
    expect(revisions).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
    expect(server).toEqual({ name: 'faulty', version: '1' })
    expect(probes.find(({ name }) => name.startsWith('discover'))).toMatchObject({
      status: 'refused',
    })
    expect(stderr).toBe('called look\n')
    expect([...(definitions?.listing('tools')?.items.keys() ?? [])]).toEqual(['look', 'change'])
  })

  it('has all its tools called if that is allowed', async () => {
    const { stderr } = await checkCommand([process.execPath, FAULTY], {
      allowCalls: true,
      only: [OPEN, 'calls of tools'],
    })
    expect(stderr).toBe('called look\ncalled change\n')
  })

  it.each([
    ['stray', OPEN, 'stray-text'],
    ['no ping', OPEN, 'failed-ping'],
    ['no list', OPEN, 'failed-list'],
    ['flood', OPEN, 'excessive-output'],
    ['any method', 'unknown method', 'unknown-method-result'],
    ['wrong code', 'unknown method', 'unknown-method-code'],
    ['exits', 'unknown method', 'crash'],
    ['any tool', 'unknown tool', 'unknown-tool-result'],
    ['tool error', 'unknown tool', 'unknown-tool-error'],
    ['fatal input', 'invalid JSON', 'fatal-input'],
    ['wrong id', 'ids', 'duplicate-response'],
    ['inexact id', 'id beyond 2^53', 'inexact-id'],
    ['inconsistent', 'cancellation', 'inconsistent'],
    ['loses', 'end of input', 'lost-at-end'],
  ])('with the fault "%s" has in "%s" the finding %s', async (fault, probe, rule) => {
    const { rules } = await checkCommand([process.execPath, FAULTY, fault], { only: [OPEN, probe] })
    expect(
      rules.filter((each) => each.startsWith(probe)).map((each) => each.split(': ')[1]),
    ).toContain(rule)
  })

  it('that fails before it looks up a tool has no finding for an unknown tool', async () => {
    const { rules } = await checkCommand([process.execPath, FAULTY, 'no browser'], {
      only: [OPEN, 'unknown tool'],
    })
    expect(rules).toEqual([])
  })

  it.each([
    ['silent', 'unknown method', 'no-response', 500],
    // It has half of that, and a moment, to answer what was sent before.
    ['stays', 'end of input', 'runs-after-end', 8000],
    ['ignores SIGTERM', 'SIGTERM', 'ignores-sigterm', 500],
  ])(
    'with the fault "%s" has after a timeout in "%s" the finding %s',
    async (fault, probe, rule, timeout) => {
      const { rules } = await checkCommand([process.execPath, FAULTY, fault], {
        timeout,
        only: [OPEN, probe],
      })
      expect(rules).toEqual([`${probe} 2025-11-25: ${rule}`])
    },
  )

  it.each([
    ['no acknowledgement', ['subscription 2026-07-28: acknowledgement']],
    ['acknowledged subscription', []],
    // An error is a response, too.
    ['refused subscription', []],
  ])('with the fault "%s" has in "subscription" the findings %s', async (fault, expected) => {
    const { rules, probes } = await checkCommand([process.execPath, FAULTY, fault], {
      timeout: 3000,
      only: ['discover', 'subscription'],
    })
    expect(rules).toEqual(expected)
    expect(probes.map(({ name }) => name)).toEqual([
      'discover 2026-07-28',
      'subscription 2026-07-28',
    ])
  })

  it('whose tool never answers is told so, and its other tools are called', async () => {
    const { rules, stderr } = await checkCommand([process.execPath, FAULTY, 'slow tool'], {
      timeout: 3000,
      allowCalls: true,
      only: [OPEN, 'calls of tools'],
    })
    expect(rules).toEqual([])
    expect(stderr).toBe('called look\ncancelled call 0\ncalled change\n')
  })

  it('that answers nothing after a call has a finding, and no other tool is called', async () => {
    const { rules, stderr } = await checkCommand([process.execPath, FAULTY, 'hangs'], {
      timeout: 3000,
      allowCalls: true,
      only: [OPEN, 'calls of tools'],
    })
    expect(rules).toEqual(['calls of tools 2025-11-25: no-response'])
    expect(stderr).toBe('called look\n')
  })

  it('whose list never ends is left after some pages', async () => {
    const { probes, definitions } = await checkCommand([process.execPath, FAULTY, 'endless'], {
      only: [OPEN],
    })
    expect(probes.length).toBe(1)
    expect(definitions?.listing('tools')?.items.size).toBe(100)
  })

  it.each([
    [
      'that exits',
      [process.execPath, FAULTY, 'does not start'],
      /exited with code 2|closed its output/,
    ],
    ['that does not exist', ['/nonexistent/server'], /ENOENT/],
  ])('%s is no connection', async (_, command, reason) => {
    const { failure, revisions, probes } = await checkCommand(command)
    expect(failure).toMatch(reason)
    expect(revisions).toEqual([])
    expect(probes.length).toBe(2)
  })
})

describe('a server over HTTP', () => {
  let open: Listening | undefined
  afterEach(() => open?.close(0))

  it('of ours has no findings', async () => {
    open = await listen(
      createServer({
        name: 'x',
        version: '1',
        tools: [tool({ name: 'look', annotations: { readOnlyHint: true }, run: () => 'x' })],
      }),
      { port: 0 },
    )
    const { rules, revisions } = await checkUrl(open.url)
    expect(rules).toEqual([])
    expect(revisions.length).toBe(5)
  })

  it('that checks nothing has a finding for each header, and for the status', async () => {
    const { rules, server } = await checkCareless()
    expect(server).toEqual({ name: 'stateless', version: '2' })
    expect(rules).toEqual(
      expect.arrayContaining([
        'status of a notification 2025-11-25: http-status',
        'invalid MCP-Protocol-Version 2025-11-25: version-header',
        'foreign Origin 2025-11-25: origin-not-checked',
        'headers that contradict the body 2026-07-28: header-not-checked',
      ]),
    )
  })

  it('that checks only the Host has a finding of less severity', async () => {
    const { rules } = await checkCareless((request, response) => {
      if (!request.headers.host?.startsWith('127.')) response.statusCode = 403
    })
    expect(rules).toContain('foreign Origin 2025-11-25: only-host-checked')
    expect(rules.join()).not.toContain('origin-not-checked')
  })

  it('that checks only the Host, but lets all pages read its responses, does not check the Origin', async () => {
    const { rules } = await checkCareless((request, response) => {
      response.setHeader('access-control-allow-origin', '*')
      if (!request.headers.host?.startsWith('127.')) response.statusCode = 403
    })
    expect(rules).toContain('foreign Origin 2025-11-25: origin-not-checked')
    expect(rules.join()).not.toContain('only-host-checked')
  })

  it('that rejects a large id with an error without an id does not change the id', async () => {
    const { probes } = await checkCareless((_, response, text) => {
      if (!text.includes('9007199254740993,')) return
      response.statusCode = 400
      return { id: null, error: { code: -32700, message: 'Parse error' } }
    })
    const found = probes.find(({ name }) => name === 'id beyond 2^53 2025-11-25')?.found
    const inexact = found?.find(({ finding }) => finding.rule === 'inexact-id')
    expect(inexact?.finding.detail).toBe('9007199254740993 got an error with the id null')
  })

  it('that does not listen is no connection', async () => {
    const { failure } = await checkUrl(`http://127.0.0.1:${await freePort()}/mcp`)
    expect(failure).toMatch(/ECONNREFUSED/)
  })
})

function parsed(text: string): { id?: unknown; method?: string } {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: { name: 'x', version: '1' },
  },
  ping: {},
  'server/discover': {
    supportedVersions: ['2026-07-28'],
    capabilities: {},
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'stateless', version: '2' } },
  },
}

/** Checks a server that checks nothing. What `edit` returns replaces its response; with an error status there is none. */
async function checkCareless(
  edit: (
    request: IncomingMessage,
    response: ServerResponse,
    text: string,
  ) => object | void = () => {},
): Promise<Checked> {
  const careless = createHttpServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    const { id, method = '' } = parsed(text)
    const replaced = edit(request, response, text)
    if (replaced === undefined && response.statusCode >= 400) return void response.end()
    const result = RESULTS[method]
    const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
    response.setHeader('content-type', 'application/json')
    response.end(
      id === undefined ? '{}' : JSON.stringify({ jsonrpc: '2.0', id, ...(replaced ?? answer) }),
    )
  })
  await new Promise<void>((resolve) => {
    careless.listen(0, '127.0.0.1', resolve)
  })
  const { port } = careless.address() as AddressInfo // it listens on a port
  const checked = await checkUrl(`http://127.0.0.1:${port}/mcp`)
  careless.close()
  careless.closeAllConnections()
  return checked
}
