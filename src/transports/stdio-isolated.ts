import { type Stats, createReadStream, createWriteStream, fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import { ReadStream, WriteStream, isatty } from 'node:tty'
import type { Input, Output } from './streams.js'
import type { Descriptors, Wire } from './stdio-wire.js'

/** The wire on descriptors of its own: nothing that writes to stdout can reach it. */
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
  // Where it was not open, Node may have taken it for its event loop, which is none of these.
  if (
    stat !== undefined &&
    (stat.isFIFO() || stat.isSocket() || stat.isFile() || stat.isCharacterDevice())
  )
    return stat
  throw new Error(
    `The wire is to be on descriptor ${descriptor}, but that is not open; start the server through the launcher line of the documentation`,
  )
}
