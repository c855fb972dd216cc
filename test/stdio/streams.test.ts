import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { type Server, ToolError, createServer, tool } from '../../src/index.js'
import { type ServeOptions, type StdioOptions, serve, serveStdio } from '../../src/stdio.js'
import { Child, HANDSHAKE, ROOT, call, ping, pong, stopped, text, within } from './child.js'
import { serveInOneTurn } from '../clock.js'

serveInOneTurn()

const tools = [
  tool({
    name: 'echo',
    description: 'Echoes the input message back',
    input: {
      type: 'object',
      properties: { msg: { type: 'string', description: 'message to echo' } },
      required: ['msg'],
    },
    run: ({ msg }) => msg,
  }),
  tool({
    name: 'fail',
    run: () => {
      throw new Error('boom')
    },
  }),
  tool({
    name: 'refuse',
    run: () => {
      throw new ToolError('not today')
    },
  }),
  tool({ name: 'never', run: () => new Promise(() => {}) }),
]
const server = createServer({
  name: 'my-app-mcp',
  version: '1.0.0',
  tools,
  unexpectedErrors: 'protocol',
})
const greeting =
  '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"my-app-mcp","version":"1.0.0"}}}'

/** The output lines and the log of a server for an input that ends. */
async function exchange(
  messages: readonly string[],
  served: Server = server,
): Promise<{ lines: string[]; log: string }> {
  const input = new PassThrough()
  const output = new PassThrough()
  const log = new PassThrough()
  input.end(messages.map((message) => `${message}\n`).join(''))
  await within(serve(served, { input, output, log }), () => 'the end of serving')
  const lines = all(output).split('\n')
  expect(lines.pop()).toBe('')
  return { lines, log: all(log) }
}

/** Everything in a stream's buffer. Since Node 26, read() returns one chunk at a time. */
function all(stream: PassThrough): string {
  let text = ''
  const next = () => stream.read() as Buffer | string | null // what streams of text and bytes give
  for (let chunk = next(); chunk !== null; chunk = next()) text += chunk.toString()
  return text
}

// The nine tests of document 003; the titles are quoted from it (in Spanish).
describe('serve', () => {
  // initialize returns serverInfo with the right name and version
  it('initialize retorna serverInfo con Name y Version correctos', async () => {
    expect(await exchange(HANDSHAKE)).toEqual({ lines: [greeting], log: '' })
  })

  // tools/list returns the registered tools with their schemas
  it('tools/list retorna las tools registradas con su schema', async () => {
    const { lines } = await exchange([
      ...HANDSHAKE,
      '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    ])
    const nothing = { type: 'object', additionalProperties: false }
    expect(lines.slice(1).map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        result: {
          tools: [
            {
              name: 'echo',
              description: 'Echoes the input message back',
              inputSchema: {
                type: 'object',
                properties: { msg: { type: 'string', description: 'message to echo' } },
                required: ['msg'],
              },
            },
            { name: 'fail', inputSchema: nothing },
            { name: 'refuse', inputSchema: nothing },
            { name: 'never', inputSchema: nothing },
          ],
        },
      },
    ])
  })

  // tools/call of a known tool runs the handler and returns content with isError false
  it('tools/call con tool valida invoca handler y retorna content con isError false', async () => {
    const { lines } = await exchange([...HANDSHAKE, call(1, 'echo', { msg: 'hola' })])
    expect(lines).toEqual([greeting, text(1, 'hola')])
  })

  // tools/call whose handler fails gets error -32603
  it('tools/call cuando handler retorna error genera respuesta error -32603', async () => {
    const { lines, log } = await exchange([...HANDSHAKE, call(1, 'fail')])
    expect(lines).toEqual([
      greeting,
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Tool fail failed: boom"}}',
    ])
    expect(JSON.parse(log)).toMatchObject({
      level: 'error',
      message: 'Tool fail failed',
      requestId: 1,
      error: expect.stringMatching(/^Error: boom\n/),
    })
  })

  // tools/call whose handler reports isError gives result.isError, not a JSON-RPC error
  it('tools/call cuando handler retorna isError=true usa result.isError=true no error JSON-RPC', async () => {
    const { lines } = await exchange([...HANDSHAKE, call(1, 'refuse')])
    expect(lines).toEqual([
      greeting,
      '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"not today"}],"isError":true}}',
    ])
  })

  // an unknown method gets error -32601
  it('metodo desconocido retorna error -32601', async () => {
    const { lines } = await exchange([...HANDSHAKE, '{"jsonrpc":"2.0","id":1,"method":"no/such"}'])
    expect(lines).toEqual([
      greeting,
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: no/such"}}',
    ])
  })

  // a notification (no id) leaves nothing in the output
  it('notification sin id no produce respuesta en el buffer', async () => {
    const notifications = [
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","method":"no/such"}',
      '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"fail"}}',
    ]
    expect(await exchange(notifications)).toEqual({ lines: [], log: '' })
  })

  // invalid JSON gets error -32700 and id null
  it('json invalido retorna error -32700 con id null', async () => {
    const { lines } = await exchange(['{bad', ping(1)])
    expect(lines).toEqual([
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: unexpected \\"b\\" at position 1","data":{"position":1}}}',
      pong(1),
    ])
  })

  // cancelling the context stops serving, which ends without an error
  it('ctx cancel detiene ServeMCP y retorna nil sin error', async () => {
    const { input, output, controller, served } = live()
    input.write(`${ping(1)}\n`)
    expect(await written(output)).toBe(`${pong(1)}\n`)
    controller.abort()
    await expect(within(served, () => 'the end of serving')).resolves.toBeUndefined()
    expect(output.read()).toBe(null)
  })
})

/** Serves on streams that stay open. */
function live(options: Partial<ServeOptions> = {}) {
  const input = new PassThrough()
  const output = new PassThrough()
  const controller = new AbortController()
  const served = serve(server, { input, output, signal: controller.signal, ...options })
  served.catch(() => {}) // looked at later
  return { input, output, controller, served }
}

/** The next text of a stream. */
const written = (stream: PassThrough) =>
  within(
    new Promise<string>((resolve) => stream.once('readable', () => resolve(all(stream)))),
    () => 'output',
  )

describe('a signal', () => {
  it('that is aborted already ends serving before it begins', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    input.write(`${ping(1)}\n`)
    await within(
      serve(server, { input, output, signal: AbortSignal.abort() }),
      () => 'the end of serving',
    )
    expect(output.read()).toBe(null)
  })

  it('lets calls in progress finish', async () => {
    let finish = () => {}
    let begun = () => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    const slow = tool({
      name: 'slow',
      run: () =>
        new Promise<string>((resolve) => {
          finish = () => resolve('done')
          begun()
        }),
    })
    const input = new PassThrough()
    const output = new PassThrough()
    const controller = new AbortController()
    const served = serve(createServer({ name: 'slow', version: '1', tools: [slow] }), {
      input,
      output,
      signal: controller.signal,
    })
    input.write([...HANDSHAKE, call(1, 'slow'), ''].join('\n'))
    await running
    controller.abort()
    setImmediate(() => {
      input.write(`${ping(2)}\n`) // too late
      finish()
    })
    await within(served, () => 'the end of serving')
    expect(all(output).split('\n').slice(1)).toEqual([text(1, 'done'), ''])
  })

  it('lets no new request be accepted once it is aborted', async () => {
    const { input, output, controller, served } = live()
    input.write(`${ping(1)}\n`)
    expect(await written(output)).toBe(`${pong(1)}\n`)
    controller.abort()
    input.write(`${ping(2)}\n`)
    await within(served, () => 'the end of serving')
    expect(all(output)).toBe('')
  })

  it('ends a call with an error after 1 s', async () => {
    const { input, output, controller, served } = live()
    input.write([...HANDSHAKE, call(1, 'never'), ''].join('\n'))
    expect(await written(output)).toBe(`${greeting}\n`)
    controller.abort()
    await within(served, () => 'the end of serving')
    expect(all(output)).toBe(`${stopped(1)}\n`)
  })

  it('ends serving though the output is not read', async () => {
    const output = new PassThrough({ highWaterMark: 16 })
    const { input, controller, served } = live({ output })
    input.write([ping(1), ping(2), ''].join('\n'))
    await within(new Promise((resolve) => output.once('readable', resolve)), () => 'output')
    input.write(`${ping(3)}\n`)
    controller.abort()
    await within(served, () => 'the end of serving')
  })
})

describe('an output that fails', () => {
  it('rejects with the error of the write', async () => {
    const output = new Writable({
      write: (_chunk, _encoding, done) => done(new Error('disk full')),
    })
    const { input, served } = live({ output })
    input.write(`${ping(1)}\n`)
    await expect(within(served, () => 'the end of serving')).rejects.toThrow('disk full')
  })

  it('rejects with the error event, though the write is never confirmed', async () => {
    const output = new Writable({ write: () => {} })
    const { input, served } = live({ output })
    input.write(`${ping(1)}\n`)
    setImmediate(() => output.destroy(new Error('gone')))
    await expect(within(served, () => 'the end of serving')).rejects.toThrow('gone')
  })

  it('rejects on a stream that was destroyed before', async () => {
    const output = new PassThrough()
    output.destroy()
    const { input, served } = live({ output })
    input.write(`${ping(1)}\n`)
    await expect(within(served, () => 'the end of serving')).rejects.toThrow(
      'Cannot call write after a stream was destroyed',
    )
  })

  it('rejects on a stream that was ended before', async () => {
    const output = new PassThrough()
    output.end()
    const { input, served } = live({ output })
    input.write(`${ping(1)}\n`)
    await expect(within(served, () => 'the end of serving')).rejects.toThrow('write after end')
  })

  it('rejects with what write() throws', async () => {
    const script = `
      import { PassThrough } from 'node:stream'
      import { createServer } from '${ROOT}dist/index.js'
      import { serve } from '${ROOT}dist/stdio.js'
      const input = new PassThrough()
      const output = { write() { throw new Error('thrown') }, on() {} }
      input.end('{"jsonrpc":"2.0","id":1,"method":"ping"}')
      await serve(createServer({ name: 'broken', version: '1' }), { input, output }).catch((error) => console.log('rejected: ' + error.message))`
    const child = new Child(process.execPath, ['--input-type=module', '--eval', script])
    await child.closed()
    expect(child.lines).toEqual(['rejected: thrown'])
    expect(child.code).toBe(0)
  })

  it('aborts the handlers in progress', async () => {
    let stopping = () => {}
    const told = new Promise<void>((resolve) => {
      stopping = resolve
    })
    const patient = tool({
      name: 'patient',
      run: (_, { signal }) => new Promise(() => signal.addEventListener('abort', stopping)),
    })
    const output = new PassThrough()
    const input = new PassThrough()
    const served = serve(createServer({ name: 'patient', version: '1', tools: [patient] }), {
      input,
      output,
    })
    input.write([...HANDSHAKE, call(1, 'patient'), ''].join('\n'))
    await written(output)
    output.destroy(new Error('gone'))
    await expect(within(served, () => 'the end of serving')).rejects.toThrow('gone')
    await within(told, () => 'the abort signal')
  })
})

describe('an input', () => {
  it('may arrive one byte at a time', async () => {
    const { input, output, served } = live()
    for (const byte of Buffer.from(
      [...HANDSHAKE, call(1, 'echo', { msg: 'Grüße, 世界 🌍' })].join('\n'),
    ))
      input.write(Uint8Array.of(byte))
    input.end()
    await within(served, () => 'the end of serving')
    expect(all(output)).toBe(`${greeting}\n${text(1, 'Grüße, 世界 🌍')}\n`)
  })

  it('may arrive as strings', async () => {
    const { input, output, served } = live()
    input.setEncoding('utf8')
    input.end([...HANDSHAKE, call(1, 'echo', { msg: '世界' })].join('\n'))
    await within(served, () => 'the end of serving')
    expect(all(output)).toBe(`${greeting}\n${text(1, '世界')}\n`)
  })

  it('that fails ends serving like one that ends', async () => {
    const { input, output, served } = live()
    input.write(`${ping(1)}\n`)
    expect(await written(output)).toBe(`${pong(1)}\n`)
    input.destroy(new Error('reset'))
    await within(served, () => 'the end of serving')
  })

  it('that has ended before serving begins ends serving', async () => {
    const input = new PassThrough()
    input.end()
    input.resume()
    await within(
      new Promise((resolve) => input.once('close', resolve)),
      () => 'the end of the input',
    )
    await within(
      serve(server, { input, output: new PassThrough() }),
      () => 'the end of serving',
      4000,
    )
  })

  it('may be tapped', async () => {
    const seen: string[] = []
    const { input, output, served } = live({
      tap: ({ direction, frame }) => seen.push(`${direction} ${frame}`),
    })
    input.end(`${ping(1)}\n`)
    await within(served, () => 'the end of serving')
    expect(seen).toEqual([`in ${ping(1)}`, `out ${pong(1)}`])
    expect(all(output)).toBe(`${pong(1)}\n`)
  })
})

describe('an option', () => {
  it.each([
    [{ framing: 'headers' }, '"framing" must be one of auto, lines, content-length, not "headers"'],
    [{ logLevel: 'loud' }, '"logLevel" must be one of debug, info, warning, error, not "loud"'],
    [
      { logLevel: 'warn' },
      '"logLevel" must be one of debug, info, warning, error, not "warn"; did you mean "warning"?',
    ],
    [
      { log: () => {} },
      '"log" must be an object with write(line), or a logger such as that of pino',
    ],
    [{ maxMessage: -1 }, '"maxMessage" must be a number above 0'],
    [{ maxMessage: Number.NaN }, '"maxMessage" must be a number above 0'],
    [{ maxMessage: '1000' }, '"maxMessage" must be a number above 0'],
    [{ maxDepth: 0 }, '"maxDepth" must be a number above 0'],
    [{ concurrency: 0 }, '"concurrency" must be a number above 0'],
  ])('that is invalid is rejected: %j', async (wrong, message) => {
    const options = {
      input: new PassThrough().end(),
      output: new PassThrough(),
      ...wrong,
    } as unknown as ServeOptions
    await expect(serve(server, options)).rejects.toThrow(new TypeError(message))
  })

  it('that is invalid leaves stdout as it was', async () => {
    const { write } = process.stdout
    const options = { logLevel: 'loud', exit: false } as unknown as StdioOptions
    await expect(serveStdio(server, options)).rejects.toThrow(
      '"logLevel" must be one of debug, info, warning, error, not "loud"',
    )
    await expect(serveStdio({} as Server, { exit: false })).rejects.toThrow(TypeError)
    expect(process.stdout.write).toBe(write)
  })
})
