import { fileURLToPath } from 'node:url'
import { type Client, connect, stdio } from '../client.js'
import { newestHandshakeRevision } from '../protocol/revisions/index.js'
import { standardError } from '../transports/stdio-log.js'
import { VERSION } from '../version.js'
import { type Command, HELP } from './command.js'
import { print } from './print.js'
import { interruptible } from './target.js'

export const demo: Command = {
  usage: 'demo',
  about: 'Starts the server ccmcp, talks to it, and shows every message that crosses the wire.',
  options: HELP,
  words: [0, 0],
  run: () => interruptible(show),
}

async function show(signal: AbortSignal): Promise<void> {
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
      say(`${direction === 'out' ? '>' : '<'} ${frame}`),
  }
  say('The client sends lines marked >, the server answers with lines marked <.')
  say('\nThe newest protocol: every request describes itself')
  const modern = await connect(target, options)
  await modern.callTool('hello', { name: 'MCP' }, { signal }).finally(() => modern.close())

  say('\nThe handshake of the revisions before it: which revision, who is who, what is offered')
  const client = await connect(stdio(process.execPath, command), {
    ...options,
    revision: newestHandshakeRevision.id,
  })
  try {
    await tour(client, signal)
    say('\nEnd of input: the server finishes and exits')
  } finally {
    await client.close()
  }
  say('The server has exited.')
}

async function tour(client: Client, signal: AbortSignal): Promise<void> {
  say('\nWhich tools are there?')
  for await (const _ of client.tools({ signal }));
  say('\nCalling hello, add and echo')
  await client.callTool('hello', { name: 'MCP' }, { signal })
  await client.callTool('add', { a: 10, b: 32 }, { signal })
  await client.callTool('echo', { message: 'Grüße, 世界' }, { signal })
  say('\nA wrong argument is told to the model, so that it can do better')
  await client.callTool('add', { a: 10, b: 'many' }, { signal })
  say('\nAn unknown tool is an error')
  await client.callTool('missing', {}, { signal }).catch(() => signal.throwIfAborted())
  if (client.capabilities['resources'] !== undefined) {
    say('\nResources are there to be read')
    let first: string | undefined
    for await (const { uri } of client.resources({ signal })) first ??= uri
    if (first !== undefined) await client.readResource(first, { signal })
  }
  if (client.capabilities['prompts'] !== undefined) {
    say('\nPrompts are texts to begin with')
    const names: string[] = []
    for await (const { name } of client.prompts({ signal })) names.push(name)
    if (names.includes('greet')) await client.getPrompt('greet', { name: 'MCP' }, { signal })
  }
}

function say(line: string): void {
  print(`${line}\n`)
}
