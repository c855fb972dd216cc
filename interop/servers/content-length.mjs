// Writes with Content-Length headers. Reads them too, and (with the argument "both") lines.
import { answer } from './bare.mjs'

const takesLines = process.argv[2] === 'both'
let buffer = Buffer.alloc(0)

function receive(text) {
  const proper = answer(JSON.parse(text))
  if (proper === undefined) return
  const body = JSON.stringify({ jsonrpc: '2.0', ...proper })
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

function next() {
  if (takesLines && buffer[0] === 0x7b) {
    const end = buffer.indexOf('\n')
    if (end === -1) return undefined
    const line = buffer.subarray(0, end)
    buffer = buffer.subarray(end + 1)
    return line
  }
  const end = buffer.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const length = Number(/content-length: *(\d+)/i.exec(buffer.subarray(0, end).toString())?.[1])
  const start = end + 4
  if (buffer.length < start + length) return undefined
  const body = buffer.subarray(start, start + length)
  buffer = buffer.subarray(start + length)
  return body
}

process.stdin.on('data', (chunk) => {
  buffer = Buffer.concat([buffer, chunk])
  for (let message = next(); message !== undefined; message = next()) receive(message.toString())
})
