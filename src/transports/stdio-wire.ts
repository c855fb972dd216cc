import { standardError } from './stdio-log.js'
import type { Input, Output } from './streams.js'

/** Where the messages of a stdio server come in and go out. */
export interface Wire {
  input: Input
  output: Output
  /** Whether a person sits at the other end. */
  interactive: boolean
  /** Gives stdout back to its owner. */
  release(): void
}

/** File descriptors of the wire: for reading, for writing. */
export type Descriptors = readonly [input: number, output: number]

/**
 * The descriptors that the launcher has put the wire on, from `CCMCP_WIRE=3,4`;
 * taken out of the environment, so that no child process believes it too.
 */
export function descriptorsFromEnvironment(): Descriptors | undefined {
  const named = process.env['CCMCP_WIRE']
  if (named === undefined || named === '') return undefined
  delete process.env['CCMCP_WIRE']
  const match = /^(\d{1,4}),(\d{1,4})$/.exec(named)
  if (match === null)
    throw new Error(
      `CCMCP_WIRE must name two descriptors, such as 3,4, not ${JSON.stringify(named)}`,
    )
  return [Number(match[1]), Number(match[2])]
}

// A registered symbol: two copies of this package in one process understand each other.
const real = Symbol.for('ccmcp.stdout')

type Write = typeof process.stdout.write
interface Guarded extends Write {
  /** Writes to stdout itself. */
  [real]?: Write
}

/**
 * Sends what user code writes to stdout to stderr, with one warning: a stray
 * line would break the stream. Returns what gives stdout back to its owner.
 */
export function guardStdout(): () => void {
  const { stdout } = process
  const { write: ownWrite, end: ownEnd } = stdout
  if ((ownWrite as Guarded)[real] !== undefined) return () => {} // it is guarded already, by whoever gives it back
  let warned = false
  const divert = (...[text, ...rest]: unknown[]): boolean => {
    if (!warned)
      standardError.write(
        'ccmcp: something wrote to stdout, which carries the protocol; such output goes to stderr. Use console.error for logs.\n',
      )
    warned = true
    const encoding = rest.find((arg) => typeof arg === 'string') as BufferEncoding | undefined // what stdout.write takes
    const done = [text, ...rest].findLast((arg) => typeof arg === 'function') as
      | (() => void)
      | undefined
    if (typeof text === 'string')
      return standardError.write(encoding === undefined ? text : Buffer.from(text, encoding), done)
    if (text instanceof Uint8Array) return standardError.write(text, done)
    if (done !== undefined) process.nextTick(done)
    return true
  }
  stdout.write = Object.assign(divert, { [real]: ownWrite.bind(stdout) })
  stdout.end = (...args: unknown[]) => {
    divert(...args)
    return stdout
  }
  return () => {
    stdout.write = ownWrite
    stdout.end = ownEnd
  }
}

/** The wire on stdin and stdout; stdout is guarded until it is released. */
export function standardWire(): Wire {
  const { stdin, stdout } = process
  const release = guardStdout()
  const write = (stdout.write as Guarded)[real] ?? stdout.write.bind(stdout)
  const output: Output = {
    write: (text, done) => write(text, done),
    on: (event: 'drain' | 'error', listener: (error: Error) => void) => stdout.on(event, listener),
    off: (event: 'drain' | 'error', listener: (error: Error) => void) =>
      stdout.off(event, listener),
  }
  return { input: stdin, output, interactive: stdin.isTTY, release }
}
