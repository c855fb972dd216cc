import { describe, expect, it } from 'vitest'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { play } from '../../src/harness/play.js'
import { record } from '../../src/harness/record.js'
import { createServer, tool } from '../../src/index.js'
import { connectInMemory } from '../../src/testing.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'

const server = createServer({
  name: 's',
  version: '1',
  tools: [
    tool({ name: 't', run: () => 'x' }),
    tool({
      name: 'talk',
      run(_, { log }) {
        log.info('talking')
        return 'x'
      },
    }),
  ],
})
const INITIALIZE =
  '> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
const INITIALIZED = '> {"jsonrpc":"2.0","method":"notifications/initialized"}'
const OPENED =
  '< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}'
const ping = (id: number) => `> {"jsonrpc":"2.0","id":${id},"method":"ping"}`
const pong = (id: number) => `< {"jsonrpc":"2.0","id":${id},"result":{}}`
const talk =
  '> {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"talk","arguments":{}}}'
const talking =
  '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"talking"}}'
const talked =
  '< {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"x"}],"isError":false}}'
const text = (...lines: string[]) => lines.map((line) => `${line}\n`).join('')

/** A handwritten server. */
function scripted(serve: (frame: string, send: (frame: string) => void) => void): Channel {
  const [client, other] = memoryChannels()
  hostileServers.add(client).add(other)
  other.receive({
    frame: (frame) => serve(frame, (answer) => other.send(answer)),
    malformed() {},
    closed() {},
  })
  return client
}

describe('recording', () => {
  it('writes each response after its request in a transcript without `<` lines', async () => {
    const fresh = text('A talk.', INITIALIZE, INITIALIZED, '', talk, '> {nope', ping(2))
    const { transcript, unanswered } = await record(fresh, connectInMemory(server))
    expect(transcript).toBe(
      text(
        'A talk.',
        INITIALIZE,
        OPENED,
        INITIALIZED,
        '',
        talk,
        talking,
        talked,
        '> {nope',
        '< {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: unexpected \\"n\\" at position 1","data":{"position":1}}}',
        ping(2),
        pong(2),
      ),
    )
    expect(unanswered).toEqual([])
    expect((await play(transcript, connectInMemory(server))).differences).toEqual([])
  })
  it('sends grouped lines together, and keeps lines that match', async () => {
    const old = text(
      INITIALIZE,
      ping(1),
      OPENED.replace(/"serverInfo":\{[^}]*\}/, '"serverInfo":*'),
      '< "wrong"',
      '< {nope',
      'Prose.',
      ping(2),
      '< *',
    )
    const { transcript } = await record(old, connectInMemory(server))
    expect(transcript).toBe(
      text(
        INITIALIZE,
        ping(1),
        OPENED.replace(/"serverInfo":\{[^}]*\}/, '"serverInfo":*'),
        pong(1),
        'Prose.',
        ping(2),
        '< *',
      ),
    )
    expect((await record(transcript, connectInMemory(server))).transcript).toBe(transcript)
  })
  it('writes messages received at the end', async () => {
    const late = scripted((frame, send) => {
      if (frame.includes('end-of-transcript'))
        send('{"jsonrpc":"2.0","method":"notifications/late"}')
      send(frame.replace(/"method".*/, '"result":{}}'))
    })
    expect((await record(ping(1), late)).transcript).toBe(
      text(ping(1), pong(1), '< {"jsonrpc":"2.0","method":"notifications/late"}'),
    )
  })
  it("responds to the server's request from the transcript, and continues", async () => {
    const asking = scripted((frame, send) => {
      if (frame.includes('"tools/call"')) send('{"jsonrpc":"2.0","id":"r","method":"roots/list"}')
      else if (frame.includes('"roots"')) send('{"jsonrpc":"2.0","id":5,"result":{"content":[]}}')
      else send('{"jsonrpc":"2.0","id":"end-of-transcript","error":{"code":-32601,"message":"no"}}')
    })
    const roots = '> {"jsonrpc":"2.0","id":"r","result":{"roots":[]}}'
    const { transcript, unanswered } = await record(text(talk, roots), asking)
    expect(transcript).toBe(
      text(
        talk,
        '< {"jsonrpc":"2.0","id":"r","method":"roots/list"}',
        roots,
        '< {"jsonrpc":"2.0","id":5,"result":{"content":[]}}',
      ),
    )
    expect(unanswered).toEqual([])
  })
  it('lists requests without a response', async () => {
    const mute = scripted(() => {})
    const expected = { unanswered: [1, 2], transcript: text(ping(1), ping(2)) }
    expect(await record(text(ping(1), ping(2)), mute, { timeout: 10 })).toEqual(expected)
  })
  it('stops at a line that is not a message', async () => {
    const loud = scripted((_, send) => send('Hello!'))
    expect(await record(text(ping(1), ping(2)), loud)).toMatchObject({ garbage: 'Hello!' })
  })
  it('reports that the connection broke', async () => {
    const broken: Channel = {
      send() {},
      receive: ({ closed }) => void setImmediate(() => closed(new Error('gone'))),
      close: () => Promise.resolve(),
    }
    expect((await record(ping(1), broken)).broken?.message).toBe('gone')
  })
})
