let listening = false

/** Writes to stdout. Whoever reads it may stop reading: that is no fault of ours. */
export function print(text: string | Uint8Array): void {
  if (!listening) {
    listening = true
    process.stdout.on('error', quiet)
  }
  process.stdout.write(text)
}

export function quiet(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}
