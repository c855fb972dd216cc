import { spawn, spawnSync } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ElicitationContext, answerElicitation } from '../../src/cli/elicit.js'
import { fitted, StatusLine, statusText } from '../../src/cli/status-line.js'
import type { ElicitParams } from '../../src/client.js'
import { CLI, cli, server } from './command.js'

const ASK = server('ask')
const URL_FIRST = ['--', process.execPath, server('url-first')]

/** Answers an elicitation: each step waits for a text on the terminal, then types a line. */
async function answered(
  params: Partial<ElicitParams>,
  steps: readonly (readonly [shown: string, typed: string | undefined])[],
  context: Partial<ElicitationContext> = {},
) {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const output = Object.assign(new PassThrough(), { isTTY: true })
  let all = ''
  let unread = ''
  const left = [...steps]
  output.on('data', (chunk: Buffer) => {
    all += chunk.toString()
    unread += chunk.toString()
    for (
      let at = unread.indexOf(left[0]?.[0] ?? '\0');
      at !== -1;
      at = unread.indexOf(left[0]?.[0] ?? '\0')
    ) {
      const [shown = '', typed] = left.shift() ?? []
      unread = unread.slice(at + shown.length)
      setImmediate(() => (typed === undefined ? input.end() : input.write(`${typed}\n`)))
    }
  })
  const result = await answerElicitation(
    { mode: 'form', message: 'Why?', ...params },
    {
      server: 'shop (https://shop.example)',
      interactive: true,
      signal: new AbortController().signal,
      streams: { input, output },
      ...context,
    },
  )
  return { result, shown: plain(all), left }
}

/** Without colors and cursor movements. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- our own
  return text.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, '')
}

const REVIEW = '(c)ancel: '
const one = (schema: object, required = true) => ({
  requestedSchema: {
    type: 'object',
    properties: { x: schema },
    ...(required && { required: ['x'] }),
  },
})

describe('a form', () => {
  it('is not blocked by a pattern that takes exponential time', async () => {
    const { result } = await answered(one({ type: 'string', pattern: '^((a|a)*)\\1b$' }), [
      ['x: ', 'a'.repeat(60)],
      [REVIEW, 'y'],
    ])
    expect(result).toMatchObject({ content: { x: 'a'.repeat(60) } })
  })

  it.each<[string, object, string[], unknown, string]>([
    ['text', { type: 'string', minLength: 2 }, ['', 'a', 'ab'], 'ab', 'a value is required'],
    [
      'an e-mail address',
      { type: 'string', format: 'email' },
      ['a@', 'a@b.c'],
      'a@b.c',
      'expected an e-mail address',
    ],
    [
      'a URI',
      { type: 'string', format: 'uri' },
      ['b c', 'https://a.b/'],
      'https://a.b/',
      'expected a URI',
    ],
    [
      'a date',
      { type: 'string', format: 'date' },
      ['2026-02-30', '2026-02-28'],
      '2026-02-28',
      'expected a date',
    ],
    [
      'a date and time',
      { type: 'string', format: 'date-time' },
      ['2026-02-28', '2026-02-28T10:00:00Z'],
      '2026-02-28T10:00:00Z',
      'expected a date and time',
    ],
    [
      'an integer',
      { type: 'integer', minimum: 1, maximum: 9 },
      ['x', '1.5', '10', '7'],
      7,
      'must be at most 9',
    ],
    ['a number', { type: 'number' }, ['1e999', '.5'], 0.5, 'expected a number'],
    ['yes or no', { type: 'boolean' }, ['maybe', 'Yes'], true, 'expected yes or no'],
    [
      'a choice',
      { type: 'string', enum: ['a', 'b'], enumNames: ['Alpha', 'Beta'] },
      ['3', 'beta'],
      'b',
      'expected a number or a name of the list',
    ],
    [
      'a titled choice',
      {
        oneOf: [
          { const: 'a', title: 'Alpha' },
          { const: 'b', title: 'Beta' },
        ],
      },
      ['0', '1'],
      'a',
      '1. Alpha',
    ],
    [
      'a choice of numbers',
      { enum: ['10', '2'] },
      ['1', '10'],
      '10',
      'expected one of the names of the list',
    ],
    [
      'several choices',
      { type: 'array', maxItems: 1, items: { enum: ['a', 'b'] } },
      ['c', 'a,b', 'b,b'],
      ['b'],
      '"c" is not one of the choices',
    ],
    [
      'titled choices',
      {
        type: 'array',
        items: {
          anyOf: [
            { const: 'a', title: 'A, B' },
            { const: 'c', title: 'C' },
          ],
        },
      },
      ['A, B'],
      ['a'],
      '1. A, B',
    ],
  ])('asks again until it gets %s', async (_, schema, typed, value, shownProblem) => {
    const steps = typed.map((line) => ['x: ', line] as const)
    const { result, shown, left } = await answered(one(schema), [...steps, [REVIEW, 'y']])
    expect(result).toEqual({ action: 'accept', content: { x: value } })
    expect(shown).toContain(shownProblem)
    expect(left).toEqual([])
  })
  it('keeps defaults, skips optional fields, and can be edited', async () => {
    const requestedSchema = {
      type: 'object',
      properties: { a: { type: 'string', default: 'one', title: 'First' }, b: { type: 'string' } },
    }
    const { result, shown } = await answered({ requestedSchema }, [
      ['[one]', ''],
      ['b: ', ''],
      [REVIEW, 'what'],
      [REVIEW, 'e'],
      ['[one]', 'two'],
      ['b: ', ''],
      [REVIEW, 'yes'],
    ])
    expect(result).toEqual({ action: 'accept', content: { a: 'two' } })
    expect(shown).toContain('shop (https://shop.example) asks:')
    expect(shown).toContain('Please type y, e, d or c.')
  })
  it('ignores an invalid default', async () => {
    const { result } = await answered(one({ type: 'integer', default: 'x' }), [
      ['x: ', '1'],
      [REVIEW, 'y'],
    ])
    expect(result).toMatchObject({ content: { x: 1 } })
  })
  it.each([
    ['d', 'decline'],
    ['no', 'decline'],
    ['c', 'cancel'],
    [undefined, 'cancel'],
  ])('is reviewed: %s', async (typed, action) => {
    const { result } = await answered(one({ type: 'string' }), [
      ['x: ', 'v'],
      [REVIEW, typed],
    ])
    expect(result).toEqual({ action })
  })
  it('is cancelled by the end of the input', async () => {
    expect((await answered(one({ type: 'string' }), [['x: ', undefined]])).result).toEqual({
      action: 'cancel',
    })
  })
  it('without fields asks for consent only', async () => {
    const { result, shown } = await answered({ message: 'Delete \u001b[2Jall?' }, [
      ['(d)ecline, (c)ancel: ', 'y'],
    ])
    expect(result).toEqual({ action: 'accept', content: {} })
    expect(shown).toContain('Delete \\u001b[2Jall?')
    expect(shown).not.toContain('(e)dit')
  })
  it('shows no control characters of a schema', async () => {
    const requestedSchema = {
      type: 'object',
      properties: { 'x\u001b]0;t\u0007': { title: 'a\u009b31m', enum: ['b\u0007'] } },
    }
    const { shown } = await answered({ requestedSchema }, [
      ['a\\u009b31m: ', ''],
      [REVIEW, 'y'],
    ])
    expect(shown).not.toMatch(/[\u0007\u009b]/)
  })
  it('ends when the question is no longer needed', async () => {
    const controller = new AbortController()
    const asked = answered(one({ type: 'string' }), [], { signal: controller.signal })
    setImmediate(() => controller.abort(new Error('too late')))
    await expect(asked).rejects.toThrow('too late')
  })
})

describe('a URL', () => {
  const url = { mode: 'url', url: 'https://pay.example.com/bill?id=7' } as const
  it.each([
    ['y', 'accept'],
    ['d', 'decline'],
    ['c', 'cancel'],
    [undefined, 'cancel'],
  ])('is shown before it is agreed to: %s', async (typed, action) => {
    const { result, shown } = await answered(url, [[REVIEW, typed]])
    expect(shown).toContain('  https://pay.example.com/bill?id=7\n')
    expect(result).toEqual({ action })
  })
  it.each([
    ['javascript:alert(1)', 'This is not the URL of a web page; declined.'],
    ['file:///etc/passwd', 'This is not the URL of a web page; declined.'],
    ['nonsense', 'This is not the URL of a web page; declined.'],
  ])('%s is declined', async (href, problem) => {
    const { result, shown } = await answered({ ...url, url: href }, [])
    expect(shown).toContain(problem)
    expect(result).toEqual({ action: 'decline' })
  })
  it.each([
    ['https://good.example@evil.example/', 'the host is evil.example'],
    ['https://exämple.com/', 'letters other than ASCII'],
    ['http://evil.example/', 'not encrypted'],
  ])('%s is shown with a warning', async (href, problem) => {
    expect((await answered({ ...url, url: href }, [[REVIEW, 'd']])).shown).toContain(problem)
  })
})

describe('o', () => {
  const url = { mode: 'url', url: 'https://pay.example.com/bill?id=7' } as const
  it('opens the URL in the browser, after consent', async () => {
    const opened: string[] = []
    const open = (href: string) => {
      opened.push(href)
      return Promise.resolve(true)
    }
    const { result, shown } = await answered(url, [[REVIEW, 'o']], { open })
    expect(result).toEqual({ action: 'accept' })
    expect(opened).toEqual(['https://pay.example.com/bill?id=7'])
    expect(shown).not.toContain('could not be started')
    await answered(url, [[REVIEW, 'd']], { open })
    await answered({ ...url, url: 'file:///etc/passwd' }, [], { open })
    expect(opened).toHaveLength(1)
  })
  it('says so if the browser cannot be started', async () => {
    const open = () => Promise.resolve(false)
    const { result, shown } = await answered(url, [[REVIEW, 'open']], { open })
    expect(result).toEqual({ action: 'accept' })
    expect(shown).toContain('The browser could not be started; open the URL yourself.\n')
  })
})

describe('a URL that must be completed', () => {
  const url = { mode: 'url', url: 'https://pay.example.com/bill?id=7' } as const
  const FINISHED = 'Press Enter when you are finished there: '
  it.each([
    ['', 'accept'],
    [undefined, 'cancel'],
  ])('waits for Enter, and is cancelled by Ctrl-D: %s', async (typed, action) => {
    const steps = [
      [REVIEW, 'y'],
      [FINISHED, typed],
    ] as const
    const { result, left } = await answered(url, steps, { waitsForUrl: true })
    expect([result, left]).toEqual([{ action }, []])
  })
  it('waits no longer when the server says so', async () => {
    const completed = new AbortController()
    const open = () => {
      setImmediate(() => completed.abort())
      return Promise.resolve(true)
    }
    const context = { waitsForUrl: true, completed: completed.signal, open }
    const { result, shown } = await answered(url, [[REVIEW, 'o']], context)
    expect(result).toEqual({ action: 'accept' })
    expect(shown).toContain('The server says that you are finished there.\n')
    expect((await answered(url, [[REVIEW, 'y']], context)).shown).not.toContain(FINISHED)
  })
})

describe('without a terminal, or with --no-input', () => {
  it('a call that requires URLs first (−32042) fails with them', async () => {
    const { stdout, stderr, code } = await cli(['call', 'connect', ...URL_FIRST])
    expect(stderr).toMatch(
      /^ccmcp: declined the request of url-first \(.*\) to open http:\/\/127\.0\.0\.1:\d+\/notified: "Open \/notified"\. Run ccmcp in a terminal to answer it\n/,
    )
    expect(stderr).toContain('ccmcp: The server returned error -32042: ')
    expect(stderr).toMatch(/"url": "http:\/\/127\.0\.0\.1:\d+\/silent"/)
    expect([stdout, code]).toEqual(['', 1])
  })
  it.each(['2025-06-18', '2025-11-25', '2026-07-28'])(
    'requests are declined: %s',
    async (revision) => {
      const { stdout, stderr, code } = await cli(['call', 'two', ASK, '--revision', revision])
      expect([stdout, code]).toEqual(['["declined","declined"]\n', 0])
      expect(stderr).toContain(
        `ccmcp: declined the request of ask (${ASK}) for input: "First?". Run ccmcp in a terminal to answer it\n`,
      )
      expect((await cli(['call', 'pay', ASK, '--no-input'])).stderr).toContain(
        'to open https://pay.example.com/bill?id=7: "Pay here". Run ccmcp without --no-input to answer it\n',
      )
    },
  )
  it('roots are those of --root', async () => {
    const { stdout } = await cli(['call', 'where', ASK, '--root', '/', '--root', '/tmp'])
    expect(JSON.parse(stdout)).toMatchObject([
      { uri: 'file:///' },
      { uri: 'file:///tmp', name: 'tmp' },
    ])
    expect((await cli(['call', 'where', ASK])).stderr).toContain(
      'Pass --root DIR to tell the server',
    )
    expect((await cli(['call', 'where', ASK, '--root', '/no/such'])).code).toBe(2)
  })
  it('progress is not shown, and log messages only with --log-level', async () => {
    expect(await cli(['call', 'slow', ASK])).toEqual({
      code: 0,
      stdout: 'slow is done\n',
      stderr: '',
    })
    for (const revision of ['2025-06-18', '2026-07-28'])
      expect(
        await cli(['call', 'slow', ASK, '--log-level', 'warning', '--revision', revision]),
      ).toEqual({ code: 0, stdout: 'slow is done\n', stderr: '[warning] half way\n' })
  })
})

describe('the status line', () => {
  it.each([
    [undefined, 3, 'x: waiting, 3 s'],
    [{ progress: 1, total: 4, message: 'a\nb' }, 75, 'x: 1/4 (25%) a b, 1 min 15 s'],
    [{ progress: 1.234567 }, 0, 'x: 1.23, 0 s'],
    [{ progress: 5, total: 0 }, 0, 'x: 5, 0 s'],
    [{ progress: 9, total: 3, message: '\u001b[2J' }, 0, 'x: 9/3 (100%) \\u001b[2J, 0 s'],
  ])('%j', (progress, seconds, text) => {
    expect(statusText('x', progress, seconds)).toBe(text)
  })
  it('fits into the terminal', () => {
    expect(fitted('abcdef', 6)).toBe('abcdef')
    expect(fitted('abcdefg', 6)).toBe('abcde…')
    expect(fitted('世界世界', 5)).toBe('世…')
  })
  it('is rewritten, hidden and cleared', () => {
    vi.useFakeTimers() // it shows the seconds
    onTestFinished(() => void vi.useRealTimers())
    const written: string[] = []
    const line = new StatusLine('x', {
      isTTY: true,
      columns: 20,
      write: (text) => written.push(text),
    })
    line.update({ progress: 1 })
    line.update({ progress: 2 })
    line.end()
    line.update({ progress: 3 })
    expect(written).toEqual(['\r\u001b[Kx: 1, 0 s', '\r\u001b[Kx: 2, 0 s', '\r\u001b[K'])
  })
})

/** What to wait for in a terminal, and what to type then, or to do with the output so far. */
type Step = readonly [shown: string, typed: string | ((output: string) => Promise<unknown>)]

/** Runs the command line in a real terminal. */
async function inTerminal(args: readonly string[], steps: readonly Step[]) {
  const line = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ')
  const { NO_COLOR, FORCE_COLOR, ...env } = process.env
  void [NO_COLOR, FORCE_COLOR]
  const child = spawn('script', ['-qec', line, '/dev/null'], { env: { ...env, TERM: 'xterm' } })
  onTestFinished(() => void child.kill())
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve))
  let from = 0
  for (const [shown, typed] of steps) {
    await vi.waitFor(() => expect(output.indexOf(shown, from)).not.toBe(-1), { timeout: 60_000 })
    from = output.indexOf(shown, from) + shown.length
    if (typeof typed === 'string') child.stdin.write(typed)
    else await typed(output)
  }
  return { code: await exited, output }
}

describe.runIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0)(
  'a real terminal',
  () => {
    it.each(['2025-11-25', '2026-07-28'])('answers an elicitation: %s', async (revision) => {
      const { code, output } = await inTerminal(
        ['call', 'two', ASK, '--revision', revision],
        [
          ['ok: ', 'y\r'],
          [REVIEW, 'y\r'],
          ['Second?', ''],
          ['ok: ', 'n\r'],
          [REVIEW, 'd\r'],
        ],
      )
      expect(output).toContain('[{"ok":true},"declined"]\r\n')
      expect(code).toBe(0)
    })
    it('shows progress and log messages, and clears the line', async () => {
      const { code, output } = await inTerminal(['call', 'slow', ASK, '--log-level', 'info'], [])
      expect(output).toMatch(
        /\r\u001b\[Kslow: 1\/4 \(25%\) one of four, \d+ s\r\u001b\[K.*\[warning\].* half way\r\n/,
      )
      expect(output.endsWith('\r\u001b[Kslow is done\r\n')).toBe(true)
      expect(code).toBe(0)
    })
    it.each([
      ['endless', 'digging'],
      ['two', 'ok: '],
    ])('cancels by Ctrl-C: %s', async (tool, shown) => {
      const { code, output } = await inTerminal(['call', tool, ASK], [[shown, '\u0003']])
      expect(output).toContain('Interrupted\r\n')
      expect(code).toBe(130)
    })
    it('opens required URLs (−32042), then retries the call once', async () => {
      const openPage = (path: string) => (output: string) =>
        fetch(new RegExp(`http://127\\.0\\.0\\.1:\\d+${path}`).exec(plain(output))?.[0] ?? '')
      const { code, output } = await inTerminal(
        ['call', 'connect', ...URL_FIRST],
        [
          [REVIEW, 'y\r'],
          ['Press Enter when', openPage('/notified')],
          ['The server says that you are finished there.', ''],
          [REVIEW, 'y\r'],
          ['Press Enter when', openPage('/silent')],
          ['', '\r'],
        ],
      )
      expect(output).toContain('executed call 2\r\n')
      expect(code).toBe(0)
    })
    it.each<[string, Step[], string]>([
      [
        'is not retried twice',
        [
          [REVIEW, 'y\r'],
          ['Press Enter when', '\r'],
        ],
        'refused call 2',
      ],
      ['is not retried if the user declines', [[REVIEW, 'd\r']], 'refused call 1'],
    ])('a call that requires URLs first %s', async (_, steps, refusal) => {
      const { code, output } = await inTerminal(['call', 'never', ...URL_FIRST], steps)
      expect(output).toContain(refusal)
      expect(code).toBe(1)
    })
    it('shows no progress with --json', async () => {
      const { output } = await inTerminal(['call', 'slow', ASK, '--json'], [])
      expect(output).not.toContain('one of four')
    })
  },
)
