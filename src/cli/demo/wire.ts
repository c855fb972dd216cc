import { fileURLToPath } from 'node:url'
import { type Client, connect, stdio } from '../../client.js'
import { newestHandshakeRevision } from '../../protocol/revisions/index.js'
import { standardError } from '../../transports/stdio-log.js'
import { VERSION } from '../../version.js'
import { print } from '../print.js'

/** Every message of a session with the bundled server. */
export async function showWire(signal: AbortSignal): Promise<void> {
  const command = [
    fileURLToPath(new URL('cli.js', import.meta.url)),
    'serve',
    '--log-level',
    'warning',
  ]
  const target = stdio(process.execPath, command, {
    stderr: (text) => void standardError.write(text),
  })
  const options = {
    info: { name: 'ccmcp-demo', version: VERSION },
    signal,
    tap: ({ direction, frame }: { direction: 'in' | 'out'; frame: string }) =>
      printLine(`${direction === 'out' ? '>' : '<'} ${frame}`),
  }
  printLine('Lines marked > are sent by the client, lines marked < by the server.')
  printLine('\nNewest revision: stateless requests, without a handshake')
  const statelessClient = await connect(target, options)
  await statelessClient
    .callTool('hello', { name: 'MCP' }, { signal })
    .finally(() => statelessClient.close())

  printLine('\nEarlier revisions: the initialize handshake')
  const handshakeClient = await connect(stdio(process.execPath, command), {
    ...options,
    revision: newestHandshakeRevision.id,
  })
  try {
    await runSession(handshakeClient, signal)
    printLine('\nEnd of input: the server exits')
  } finally {
    await handshakeClient.close()
  }
  printLine('The server has exited.')
}

async function runSession(client: Client, signal: AbortSignal): Promise<void> {
  printLine('\nListing the tools')
  for await (const _ of client.tools({ signal }));
  printLine('\nCalling hello, add and echo')
  await client.callTool('hello', { name: 'MCP' }, { signal })
  await client.callTool('add', { a: 10, b: 32 }, { signal })
  await client.callTool('echo', { message: 'Grüße, 世界' }, { signal })
  printLine('\nAn invalid argument: an error result, which the model can correct')
  await client.callTool('add', { a: 10, b: 'many' }, { signal })
  printLine('\nAn unknown tool: a protocol error')
  await client.callTool('missing', {}, { signal }).catch(() => signal.throwIfAborted())
  if (client.capabilities['resources'] !== undefined) {
    printLine('\nListing the resources and reading one')
    let first: string | undefined
    for await (const { uri } of client.resources({ signal })) first ??= uri
    if (first !== undefined) await client.readResource(first, { signal })
  }
  if (client.capabilities['prompts'] !== undefined) {
    printLine('\nListing the prompts and getting one')
    const names: string[] = []
    for await (const { name } of client.prompts({ signal })) names.push(name)
    if (names.includes('greet')) await client.getPrompt('greet', { name: 'MCP' }, { signal })
  }
}

function printLine(line: string): void {
  print(`${line}\n`)
}
