import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.js'
import { CCMCP, Child } from '../stdio/child.js'

/*
 * Whole sessions against the built program, in both framings: the smoke session
 * of document 000, byte for byte, and the twelve steps of document 004's Q12.
 */

interface Framing {
  name: string
  encode: (message: string) => string
  /** The complete messages received so far. */
  decode: (bytes: Buffer) => string[]
}

const FRAMINGS: readonly Framing[] = [
  {
    name: 'lines',
    encode: (message) => `${message}\n`,
    decode: (bytes) => bytes.toString().split('\n').slice(0, -1),
  },
  {
    name: 'content-length',
    encode: (message) => `Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`,
    decode(bytes) {
      const found: string[] = []
      for (let at = 0; ;) {
        const body = bytes.indexOf('\r\n\r\n', at) + 4
        const length = Number(
          /^Content-Length: (\d+)$/.exec(bytes.toString('latin1', at, body - 4))?.[1],
        )
        if (body < 4 || !(body + length <= bytes.length)) return found
        found.push(bytes.toString('utf8', body, body + length))
        at = body + length
      }
    },
  },
]

describe.each(FRAMINGS)('document 000: the smoke session in $name', ({ name, encode, decode }) => {
  const transcript = readFileSync(new URL('transcripts/smoke.txt', import.meta.url), 'utf8').split(
    '\n',
  )
  const marked = (mark: string) =>
    transcript.filter((line) => line.startsWith(mark)).map((line) => line.slice(2))
  const run = async (...options: string[]) => {
    const child = new Child(CCMCP, ['serve', 'grammar', ...options])
    child.write(marked('> ').map(encode).join(''))
    child.end()
    await child.closed()
    return child
  }
  it.each([['detected', []] as const, ['with --framing', ['--framing', name]] as const])(
    'matches byte for byte, %s',
    async (_, options) => {
      const { stdout, code } = await run(...options)
      expect(stdout.toString()).toBe(marked('< ').map(encode).join(''))
      expect(code).toBe(0)
    },
  )
  it('has five messages and four responses, with "ate" and "comió"', async () => {
    const answers = decode((await run()).stdout)
    expect([marked('> ').length, answers.length]).toEqual([5, 4])
    expect(
      answers
        .slice(2)
        .map(
          (answer) =>
            (JSON.parse(answer) as { result: { content: { text: string }[] } }).result.content[0]
              ?.text,
        ),
    ).toEqual(['ate', 'comió'])
  })
  it('has no error on stderr', async () => {
    const { stderr } = await run()
    for (const line of stderr.trim().split('\n'))
      expect((JSON.parse(line) as { level: string }).level).toMatch(/^(?:debug|info)$/)
  })
})

interface Message {
  id?: number | null
  method?: string
  result?: Record<string, unknown>
  error?: { code: number; message: string }
}

/** The helper of Q12: requests with their responses, notifications, and messages from the server. */
class McpClient {
  readonly child: Child
  readonly #framing: Framing
  #taken = 0
  #next = 1
  readonly #notifications: Message[] = []

  constructor(framing: Framing) {
    this.#framing = framing
    this.child = new Child(CCMCP)
  }

  async sendRequest(method: string, params?: object): Promise<Message> {
    const id = this.#next++
    this.sendRaw(
      JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }),
    )
    return this.answer(id)
  }

  sendNotification(method: string): void {
    this.sendRaw(JSON.stringify({ jsonrpc: '2.0', method }))
  }

  sendRaw(message: string): void {
    this.child.write(this.#framing.encode(message))
  }

  /** The response with that id; messages before it are stored. */
  async answer(id: number | null): Promise<Message> {
    for (;;) {
      await this.child.until(() => this.#all().length > this.#taken, `the answer to ${id}`)
      const message = JSON.parse(this.#all()[this.#taken++] ?? '') as Message
      if (message.method === undefined && message.id === id) return message
      this.#notifications.push(message)
    }
  }

  readNotification(): Message | undefined {
    return this.#notifications.shift()
  }

  #all(): string[] {
    return this.#framing.decode(this.child.stdout)
  }
}

describe.each(FRAMINGS)('document 004, Q12: the end-to-end session in $name', (framing) => {
  it('can be replayed as a transcript', async () => {
    const transcript = fileURLToPath(new URL('transcripts/q12.txt', import.meta.url))
    const args = ['play', transcript, '--framing', framing.name, '--timeout', '60']
    const child = new Child(CCMCP, args)
    child.end()
    await child.closed()
    expect([child.stdout.toString(), child.stderr, child.code]).toEqual([
      `${transcript}: 11 messages sent, 15 received as expected\n`,
      '',
      0,
    ])
  })
  it('goes through its twelve steps', async () => {
    const client = new McpClient(framing)
    const text = ({ result }: Message) =>
      (result as { content?: { text: string }[] }).content?.[0]?.text
    const names = (list: unknown, key = 'name') =>
      (list as Record<string, string>[]).map((each) => each[key])

    // 1. initialize
    const opened = await client.sendRequest('initialize', {
      protocolVersion: '2025-03-26',
      capabilities: {},
      clientInfo: { name: 'test', version: '1.0' },
    })
    expect(opened.result).toMatchObject({
      protocolVersion: '2025-03-26',
      capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} },
      serverInfo: { name: 'ccmcp', version: VERSION },
    })
    // 2. initialized
    client.sendNotification('notifications/initialized')
    // 3. tools/list: no message before its response
    expect(names((await client.sendRequest('tools/list')).result?.['tools'])).toEqual(
      expect.arrayContaining(['hello', 'add', 'echo']),
    )
    expect(client.readNotification()).toBeUndefined()
    // 4. hello
    expect(
      text(await client.sendRequest('tools/call', { name: 'hello', arguments: { name: 'MCP' } })),
    ).toBe('Hello, MCP!')
    expect(client.readNotification()).toEqual(logged('info', 'Server initialized'))
    expect(client.readNotification()).toEqual(logged('debug', 'Calling tool: hello'))
    // 5. add
    expect(
      text(await client.sendRequest('tools/call', { name: 'add', arguments: { a: 10, b: 32 } })),
    ).toBe('42')
    // 6. an unknown tool
    expect((await client.sendRequest('tools/call', { name: 'nope' })).error).toMatchObject({
      code: -32602,
      message: 'Unknown tool: nope',
    })
    // 7. resources/list
    expect(
      names((await client.sendRequest('resources/list')).result?.['resources'], 'uri'),
    ).toEqual(['config://server', 'stats://usage', 'help://commands'])
    // 8. resources/read
    const config = (await client.sendRequest('resources/read', { uri: 'config://server' }))
      .result?.['contents'] as { text: string }[]
    expect(JSON.parse(config[0]?.text ?? '')).toMatchObject({
      name: 'ccmcp',
      version: VERSION,
      tools: 8,
    })
    // 9. prompts/list
    expect(names((await client.sendRequest('prompts/list')).result?.['prompts'])).toEqual([
      'greet',
      'summarize',
      'code_review',
    ])
    // 10. prompts/get
    expect(
      (await client.sendRequest('prompts/get', { name: 'greet', arguments: { name: 'Alice' } }))
        .result?.['messages'],
    ).toEqual([{ role: 'user', content: { type: 'text', text: 'Please greet Alice warmly' } }])
    // 11. invalid JSON
    client.sendRaw('{not json')
    expect((await client.answer(null)).error?.code).toBe(-32700)
    // 12. end of input
    client.child.end()
    await client.child.closed()
    expect(client.child.code).toBe(0)
  })
})

const logged = (level: string, data: string) => ({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level, logger: 'ccmcp', data },
})
