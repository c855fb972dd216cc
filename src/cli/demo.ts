import { fileURLToPath } from 'node:url'
import { tap } from '../jsonrpc/channel.js'
import { Peer } from '../jsonrpc/peer.js'
import { newestHandshake } from '../protocol/revisions/index.js'
import { ProcessChannel } from '../transports/stdio-client.js'
import { VERSION } from '../version.js'
import { UsageError } from './options.js'

/** Starts the server as a child process and shows every message that crosses the wire. */
export async function demo(args: readonly string[]): Promise<void> {
  if (args.length > 0) throw new UsageError('ccmcp demo takes no arguments')
  const server = new ProcessChannel(process.execPath, [
    fileURLToPath(new URL('cli.js', import.meta.url)),
    'serve',
    '--log-level',
    'warning',
  ])
  say('The client sends lines marked >, the server answers with lines marked <.')
  const channel = tap(server, ({ direction, frame }) => say(`${direction === 'out' ? '>' : '<'} ${frame}`))
  const client = new Peer(channel, {
    request: () => ({}),
    notification: () => {},
    answersGarbage: false,
    report: ({ message }) => process.stderr.write(`${message}\n`),
  })
  const request = (method: string, params?: object) => client.request(method, params, { timeout: 10_000 })

  say('\nThe handshake: which protocol revision, who is who, what is offered')
  await request('initialize', {
    protocolVersion: newestHandshake.id,
    capabilities: {},
    clientInfo: { name: 'ccmcp-demo', version: VERSION },
  })
  client.notify('notifications/initialized')
  say('\nWhich tools are there?')
  await request('tools/list')
  say('\nCalling them')
  await request('tools/call', { name: 'hello', arguments: { name: 'MCP' } })
  await request('tools/call', { name: 'add', arguments: { a: 10, b: 32 } })
  await request('tools/call', { name: 'echo', arguments: { message: 'Grüße, 世界' } })
  say('\nA wrong argument is told to the model, so that it can do better')
  await request('tools/call', { name: 'add', arguments: { a: 10, b: 'many' } })
  say('\nAn unknown tool is an error')
  await request('tools/call', { name: 'missing' }).catch(() => {})
  say('\nEnd of input: the server finishes and exits')
  await client.close()
  const code = await server.exited
  say(`The server has exited with ${code}.`)
  process.exitCode = code === 0 ? 0 : 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
