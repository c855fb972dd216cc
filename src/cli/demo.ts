import { fileURLToPath } from 'node:url'
import { connect, stdio } from '../client.js'
import { newestHandshake } from '../protocol/revisions/index.js'
import { VERSION } from '../version.js'
import { UsageError } from './options.js'

/** Starts the server as a child process and shows every message that crosses the wire. */
export async function demo(args: readonly string[]): Promise<void> {
  if (args.length > 0) throw new UsageError('ccmcp demo takes no arguments')
  const command = [fileURLToPath(new URL('cli.js', import.meta.url)), 'serve', '--log-level', 'warning']
  const target = stdio(process.execPath, command, { stderr: (text) => process.stderr.write(text) })
  const options = {
    info: { name: 'ccmcp-demo', version: VERSION },
    tap: ({ direction, frame }: { direction: 'in' | 'out'; frame: string }) => say(`${direction === 'out' ? '>' : '<'} ${frame}`),
  }
  say('The client sends lines marked >, the server answers with lines marked <.')
  say('\nThe newest protocol: every request describes itself')
  const modern = await connect(target, options)
  await modern.callTool('hello', { name: 'MCP' })
  await modern.close()

  say('\nThe handshake of the revisions before it: which revision, who is who, what is offered')
  const client = await connect(stdio(process.execPath, command), { ...options, revision: newestHandshake.id })
  say('\nWhich tools are there?')
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  say(`\nCalling ${names.join(', ')}`)
  await client.callTool('hello', { name: 'MCP' })
  await client.callTool('add', { a: 10, b: 32 })
  await client.callTool('echo', { message: 'Grüße, 世界' })
  say('\nA wrong argument is told to the model, so that it can do better')
  await client.callTool('add', { a: 10, b: 'many' })
  say('\nAn unknown tool is an error')
  await client.callTool('missing').catch(() => {})
  say('\nEnd of input: the server finishes and exits')
  await client.close()
  say('The server has exited.')
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
