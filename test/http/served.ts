import { type Server, createServer, form, prompt, resource, sample, tool } from '../../src/index.js'

/** Lets a test decide when a handler continues. */
export class Gate {
  #waiting = new Map<string, (() => void)[]>()
  #passed = new Set<string>()

  /** Resolves when the gate of that name is opened. */
  wait(name: string, signal?: AbortSignal): Promise<void> {
    if (this.#passed.has(name)) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve])
      signal?.addEventListener('abort', () => reject(signal.reason as Error))
    })
  }

  open(name: string): void {
    this.#passed.add(name)
    for (const resolve of this.#waiting.get(name) ?? []) resolve()
  }
}

/** A server with something of every kind; `gate` is what its slow tools wait for. */
export function servedOverHttp(gate = new Gate()): {
  server: Server
  gate: Gate
  ended: Map<string, string>
} {
  const ended = new Map<string, string>()
  const server = createServer({
    name: 'over-http',
    version: '1.0.0',
    tools: [
      tool({
        name: 'echo',
        input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
        run: ({ text }) => text,
      }),
      tool({
        name: 'region',
        input: {
          type: 'object',
          properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            level: { type: 'integer', 'x-mcp-header': 'Level' },
            dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
          },
        },
        run: (input) => JSON.stringify(input),
      }),
      tool({
        name: 'steps',
        input: { type: 'object', properties: { gate: { type: 'string' } }, required: ['gate'] },
        async run({ gate: name }, call) {
          call.progress(1, 3)
          try {
            await gate.wait(name, call.signal)
            call.progress(2, 3)
            await new Promise(setImmediate)
            ended.set(name, 'done')
            return `passed ${name}`
          } catch (error) {
            ended.set(name, `stopped: ${error instanceof Error ? error.message : String(error)}`)
            throw error
          }
        },
      }),
      tool({
        name: 'quiet',
        input: { type: 'object', properties: { gate: { type: 'string' } }, required: ['gate'] },
        async run({ gate: name }, call) {
          await gate.wait(name, call.signal).catch((error: Error) => {
            ended.set(name, `stopped: ${error.message}`)
            throw error
          })
          return `passed ${name}`
        },
      }),
      tool({
        name: 'polled',
        input: { type: 'object', properties: { gate: { type: 'string' } }, required: ['gate'] },
        async run({ gate: name }, call) {
          call.releaseStream()
          await gate.wait(name, call.signal)
          return `polled ${name}`
        },
      }),
      tool({
        name: 'ask',
        input: { type: 'object', properties: { gate: { type: 'string' } } },
        async run({ gate: name }, call) {
          if (name !== undefined) {
            call.log.info('before')
            await gate.wait(name, call.signal)
          }
          const schema = {
            type: 'object',
            properties: { name: { type: 'string' } },
            required: ['name'],
          } as const
          const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
          return `It is ${who.name}`
        },
      }),
      tool({
        name: 'sample',
        async run(_, call) {
          const { it } = await call.ask({
            it: sample({ messages: [{ role: 'user', content: 'Hello' }], maxTokens: 9 }),
          })
          return it.model
        },
      }),
      tool({
        name: 'big',
        input: { type: 'object', properties: { size: { type: 'integer' } } },
        run: ({ size = 10 }) => 'x'.repeat(size),
      }),
      tool({
        name: 'flood',
        async run(_, call) {
          for (let i = 0; i < 200 && !call.signal.aborted; i++) {
            call.log.error('y'.repeat(100_000))
            await new Promise(setImmediate)
          }
          ended.set('flood', call.signal.aborted ? 'stopped' : 'done')
          return 'flooded'
        },
      }),
      tool({
        name: 'broken',
        run: () => {
          throw new Error('secret /etc/passwd')
        },
      }),
    ],
    resources: [
      resource({ uri: 'note://one', mimeType: 'text/plain', read: () => 'one' }),
      resource({ uri: 'note://ü/{name}', read: ({ name }) => name }),
      resource({
        uri: 'note://broken',
        read: () => {
          throw new Error('secret path')
        },
      }),
    ],
    prompts: [prompt({ name: 'hello', build: () => 'Hello' })],
  })
  return { server, gate, ended }
}
