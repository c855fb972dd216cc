import { describe, expect, it } from 'vitest'
import { createServer, tool } from '../../src/index.js'
import { answers, call, drive, initialize } from '../drive.js'

const greeting = {
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', data: 'Welcome' },
}
const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`
const pong = (id: number) => ({ jsonrpc: '2.0', id, result: {} })

function server(names: (string | undefined)[] = []) {
  return createServer({
    name: 's',
    version: '1',
    tools: [
      tool({ name: 'later', run: () => Promise.resolve('done') }),
      tool({
        name: 'logs',
        run: (_, { log }) => {
          log.notice({ step: 1 }, 'work')
          return 'done'
        },
      }),
    ],
    onInitialized({ caller, log }) {
      names.push(caller.info?.name)
      log.info('Welcome')
    },
  })
}

describe('onInitialized', () => {
  it('is called once, after the first response after notifications/initialized', async () => {
    const names: (string | undefined)[] = []
    const [, ...rest] = await answers(server(names), [
      ...initialize('2025-11-25'),
      ping(1),
      ping(2),
    ])
    expect(rest).toEqual([pong(1), greeting, pong(2)])
    expect(names).toEqual(['test'])
  })
  it('waits for an asynchronous response', async () => {
    const [, ...rest] = await answers(server(), [...initialize('2025-11-25'), call('later')])
    expect(rest).toMatchObject([{ id: 1, result: {} }, greeting])
  })
  it('is not called before notifications/initialized, nor for a batch', async () => {
    const [open = '', initialized = ''] = initialize('2025-03-26')
    expect((await answers(server(), [open, ping(1)])).slice(1)).toEqual([pong(1)])
    expect(
      (await answers(server(), [open, initialized, `[${ping(1)}]`, ping(2)])).slice(1),
    ).toEqual([[pong(1)], pong(2), greeting])
  })
  it('that throws does not close the connection', async () => {
    const broken = createServer({
      name: 's',
      version: '1',
      onInitialized() {
        throw new Error('boom')
      },
    })
    const { output, log } = await drive(
      broken,
      [...initialize('2025-11-25'), ping(1), ping(2), ''].join('\n'),
    )
    expect(output.split('\n').slice(1, 3)).toEqual(
      [ping(1), ping(2)].map((_, index) => JSON.stringify(pong(index + 1))),
    )
    expect(log).toContain('onInitialized failed')
  })
})

describe("a call's log", () => {
  it('goes to the client and, with the id, to the log of the process', async () => {
    const input = [...initialize('2025-11-25'), call('logs', {}, 7), ''].join('\n')
    const { output, log } = await drive(server(), input, { logLevel: 'info' })
    expect(output).toContain('{"level":"notice","logger":"work","data":{"step":1}}')
    const lines = log.split('\n').filter(Boolean)
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ level: 'info', message: '{"step":1}', requestId: 7 }),
    )
  })
  it('is not sent before notifications/initialized', async () => {
    const [open = ''] = initialize('2025-11-25')
    const { output } = await drive(server(), [open, call('logs'), ''].join('\n'))
    expect(output).not.toContain('notifications/message')
  })
})

describe('a synchronous middleware', () => {
  it('keeps the order of responses and log messages', async () => {
    const served = server()
    served.use((call, next) => {
      call.log.info(`before ${call.method}`)
      return next()
    })
    const found = await answers(served, [...initialize('2025-11-25'), ping(1), ping(2)])
    expect(
      found.map(
        (message) => (message as { id?: unknown }).id ?? (message as typeof greeting).params.data,
      ),
    ).toEqual(['init', 'before ping', 1, 'Welcome', 'before ping', 2])
  })
})
