import { PassThrough, Writable } from 'node:stream'
import type { Server } from '../src/index.js'
import { type ServeOptions, serve } from '../src/stdio.js'

/** Serves input bytes over streams and returns all output when the server has ended. */
export async function drive(
  server: Server,
  input: string | Uint8Array,
  options: Partial<ServeOptions> = {},
): Promise<{ output: string; log: string }> {
  const stream = new PassThrough()
  let output = ''
  let log = ''
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      output += chunk.toString()
      done()
    },
  })
  stream.end(input)
  await serve(server, {
    input: stream,
    output: sink,
    log: { write: (line) => (log += line) },
    ...options,
  })
  return { output, log }
}

/** The parsed responses to input lines. */
export async function answers(
  server: Server,
  lines: readonly string[],
  options?: Partial<ServeOptions>,
): Promise<unknown[]> {
  const { output } = await drive(server, lines.map((line) => line + '\n').join(''), options)
  return output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown)
}

export function initialize(protocolVersion: string): string[] {
  return [
    JSON.stringify({
      jsonrpc: '2.0',
      id: 'init',
      method: 'initialize',
      params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    }),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  ]
}

export function call(name: string, args: unknown = {}, id: unknown = 1): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  })
}
