import { afterEach, describe, expect, it } from 'vitest'
import { type Listening, listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { FAULTY, checkCommand, checkUrl } from './live.js'

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

  it.each([
    ['silent', 'unknown method', 'no-response'],
    ['stays', 'end of input', 'runs-after-end'],
    ['ignores SIGTERM', 'SIGTERM', 'ignores-sigterm'],
  ])(
    'with the fault "%s" has after a timeout in "%s" the finding %s',
    async (fault, probe, rule) => {
      const { rules } = await checkCommand([process.execPath, FAULTY, fault], {
        timeout: 4000,
        only: [OPEN, probe],
      })
      expect(rules).toEqual([`${probe} 2025-11-25: ${rule}`])
    },
  )

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

  it('that does not listen is no connection', async () => {
    open = await listen(createServer({ name: 'x', version: '1' }), { port: 0 })
    const { url } = open
    await open.close(0)
    const { failure } = await checkUrl(url)
    expect(failure).toMatch(/ECONNREFUSED/)
  })
})
