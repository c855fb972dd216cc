import { standardError } from '../transports/stdio-log.js'

let listening = false

/** Writes to stdout. Whoever reads it may stop reading: that is no fault of ours. */
export function print(text: string | Uint8Array): void {
  if (!listening) {
    listening = true
    process.stdout.on('error', failed)
  }
  process.stdout.write(text)
}

/** A full disk, say: what was asked for is not all there. */
function failed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  standardError.write(`ccmcp: stdout cannot be written: ${error.message}\n`)
  process.exit(1)
}
