import type { Stats } from 'node:fs'
import type { Input, Output } from './streams.js'
import type { Descriptors, Wire } from './stdio-wire.js'

/** Not imported, nor read at load: the client's bundle for a browser has this file too. */
function modules() {
  return {
    fs: process.getBuiltinModule('node:fs'),
    net: process.getBuiltinModule('node:net'),
    tty: process.getBuiltinModule('node:tty'),
  }
}

/** Messages on other file descriptors than stdin and stdout: nothing that is written to stdout can break them. */
export function isolatedWire([input, output]: Descriptors): Wire {
  const stream = openInput(input)
  return {
    input: stream,
    output: openOutput(output),
    interactive: modules().tty.isatty(input),
    release: () => void stream.destroy(),
  }
}

function openInput(descriptor: number): Input & { destroy(): unknown } {
  const stat = statOf(descriptor)
  const { net, tty, fs } = modules()
  if (stat.isFIFO() || stat.isSocket())
    return new net.Socket({ fd: descriptor, readable: true, writable: false })
  if (tty.isatty(descriptor)) return new tty.ReadStream(descriptor)
  return fs.createReadStream('', { fd: descriptor, autoClose: false })
}

function openOutput(descriptor: number): Output {
  const stat = statOf(descriptor)
  const { net, tty, fs } = modules()
  if (stat.isFIFO() || stat.isSocket())
    return new net.Socket({ fd: descriptor, readable: false, writable: true })
  if (tty.isatty(descriptor)) return new tty.WriteStream(descriptor)
  return fs.createWriteStream('', { fd: descriptor, autoClose: false })
}

function statOf(descriptor: number): Stats {
  let stat: Stats | undefined
  try {
    stat = modules().fs.fstatSync(descriptor)
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
