import type { Transport } from '../capture/format.js'
import type { Server } from '../index.js'
import { type StdioOptions, serveStdio } from '../stdio.js'
import { CaptureFile } from '../tap/capture-file.js'
import { warn } from './print.js'

/** Maximum size of a capture. */
export const MAX_CAPTURE = 256 * 1024 * 1024

/** The capture of `ccmcp serve`. */
export function serverCapture(path: string, transport: Transport): CaptureFile {
  const failed = ({ message }: Error) =>
    warn(`cannot write the capture: ${message}; the server runs without it`)
  const capture = new CaptureFile(path, { transport, maxBytes: MAX_CAPTURE, failed })
  if (capture.path !== undefined) warn(`recording to ${capture.path}`)
  return capture
}

/** Serves on stdio, and records the bytes. */
export async function serveRecorded(
  server: Server,
  options: StdioOptions,
  path: string,
): Promise<void> {
  const capture = serverCapture(path, 'stdio')
  capture.event('serve', { argv: process.argv, pid: process.pid, ppid: process.ppid })
  await serveStdio(server, {
    ...options,
    exit: false,
    onBytes: (dir, bytes) => capture.bytes(dir, bytes),
  })
  await endCapture(capture)
}

/** Completes a capture and exits. */
export async function endCapture(capture: CaptureFile): Promise<never> {
  capture.event('exit', { code: 0, signal: null })
  await capture.close()
  process.exit(0)
}
