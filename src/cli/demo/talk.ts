import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Client, type ConnectOptions, connect, stdio } from '../../client.js'
import { VERSION } from '../../version.js'
import type { Frame } from './columns.js'

interface TalkOptions extends ConnectOptions {
  /** Milliseconds that the server takes for a photo. */
  pace?: number
}

/** Starts a server, uses a client of it, and returns the messages. */
export async function talk(
  server: string,
  { pace = 1, ...options }: TalkOptions,
  use: (client: Client) => Promise<unknown>,
): Promise<Frame[]> {
  const frames: Frame[] = []
  const target = stdio(process.execPath, [server], { env: { DEMO_PACE: String(pace) } })
  const client = await connect(target, {
    ...options,
    info: { name: 'ccmcp-demo', version: VERSION },
    tap: (tapped) => frames.push(tapped),
  })
  try {
    await use(client)
  } finally {
    await client.close()
  }
  return frames
}

/** Starts a server, writes lines that need not be messages, and returns what it writes until it exits. */
export async function talkInLines(
  server: string,
  lines: readonly string[],
  signal: AbortSignal,
): Promise<{ received: string[]; stderr: string[] }> {
  signal.throwIfAborted()
  const child = spawn(process.execPath, [server], {
    env: { ...process.env, DEMO_PACE: '1' },
    stdio: 'pipe',
    windowsHide: true,
    signal,
  })
  child.stdin.on('error', () => {}) // it has exited: the lines that it wrote are missing
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  child.stdin.end(lines.map((line) => `${line}\n`).join(''))
  await once(child, 'close')
  return { received: output.stdout.split('\n'), stderr: output.stderr.split('\n') }
}
