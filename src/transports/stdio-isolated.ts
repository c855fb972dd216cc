import { type Stats, createReadStream, createWriteStream, fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import { ReadStream, WriteStream, isatty } from 'node:tty'
import type { Input, Output } from './streams.js'
import type { Descriptors, Wire } from './stdio-wire.js'

/** Messages on other file descriptors than stdin and stdout: nothing that is written to stdout can break them. */
export function isolatedWire([input, output]: Descriptors): Wire {
  const stream = openInput(input)
  return {
    input: stream,
    output: openOutput(output),
    interactive: isatty(input),
    release: () => void stream.destroy(),
  }
}

function openInput(descriptor: number): Input & { destroy(): unknown } {
  const stat = statOf(descriptor)
  if (stat.isFIFO() || stat.isSocket())
    return new Socket({ fd: descriptor, readable: true, writable: false })
  if (isatty(descriptor)) return new ReadStream(descriptor)
  return createReadStream('', { fd: descriptor, autoClose: false })
}

function openOutput(descriptor: number): Output {
  const stat = statOf(descriptor)
  if (stat.isFIFO() || stat.isSocket())
    return new Socket({ fd: descriptor, readable: false, writable: true })
  if (isatty(descriptor)) return new WriteStream(descriptor)
  return createWriteStream('', { fd: descriptor, autoClose: false })
}

function statOf(descriptor: number): Stats {
  let stat: Stats | undefined
  try {
    stat = fstatSync(descriptor)
  } catch {}
  // If the descriptor was not open, Node may use its number internally (epoll), which is none of these types.
  if (
    stat !== undefined &&
    (stat.isFIFO() || stat.isSocket() || stat.isFile() || stat.isCharacterDevice())
  )
    return stat
  throw new Error(
    `File descriptor ${descriptor} is named by CCMCP_WIRE or "wire" but is not open; open it before the server is started`,
  )
}
