import { standardError } from './stdio-log.js'
import type { Input, Output } from './streams.js'

/** The byte streams of a stdio server. */
export interface Wire {
  input: Input
  output: Output
  /** Whether the input is a terminal. */
  interactive: boolean
  /** Restores stdout, or closes the input if the wire uses other descriptors. */
  release(): void
}

/** File descriptors for reading and for writing. */
export type Descriptors = readonly [input: number, output: number]

/**
 * The file descriptors that the launcher names in `CCMCP_WIRE=3,4`. The variable is deleted, so that child processes do
 * not use them as well.
 */
export function descriptorsFromEnvironment(): Descriptors | undefined {
  const named = process.env['CCMCP_WIRE']
  if (named === undefined || named === '') return undefined
  delete process.env['CCMCP_WIRE']
  const match = /^(\d{1,4}),(\d{1,4})$/.exec(named)
  if (match === null)
    throw new Error(
      `CCMCP_WIRE must be two file descriptors, such as 3,4, not ${JSON.stringify(named)}`,
    )
  return [Number(match[1]), Number(match[2])]
}

// A registered symbol: shared by several copies of this package in one process.
const real = Symbol.for('ccmcp.stdout')

type Write = typeof process.stdout.write
interface Guarded extends Write {
  /** Writes to stdout itself. */
  [real]?: Write
}

/**
 * Redirects what user code writes to stdout to stderr, with one warning: the specification allows nothing but messages on
 * stdout. Returns a function that restores stdout.
 */
export function guardStdout(): () => void {
  const { stdout } = process
  const { write: ownWrite, end: ownEnd } = stdout
  if ((ownWrite as Guarded)[real] !== undefined) return () => {} // guarded already, by the caller that will restore it
  let warned = false
  const divert = (...[text, ...rest]: unknown[]): boolean => {
    if (!warned)
      standardError.write(
        'ccmcp: output to stdout was redirected to stderr, because stdout carries the protocol. Use console.error for logs.\n',
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

/** Messages on stdin and stdout; stdout is guarded until `release`. */
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
