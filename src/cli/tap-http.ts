import { readFileSync } from 'node:fs'
import type { CaptureFile } from '../tap/capture-file.js'
import { HttpTap } from '../tap/http.js'
import { proxyOf, tunnel } from '../transports/http/client/node-proxy.js'
import { urlOf } from './http-server.js'
import { UsageError } from './options.js'
import { portOf } from './port.js'
import { print } from './print.js'

/** Listens in front of a server at a URL until SIGINT, SIGTERM or SIGHUP. */
export async function tapUrl(
  given: string,
  values: ReadonlyMap<string, string>,
  open: (label: string) => CaptureFile,
): Promise<void> {
  const server = urlOf(given)
  const port = portOf(values.get('port') ?? '0')
  const file = values.get('ca')
  const ca = file === undefined ? undefined : contents(file)
  const proxy = server.protocol === 'https:' ? proxyOf(server, process.env) : undefined
  const capture = open(server.hostname)
  const tap = await listen({
    server,
    port,
    capture,
    ca,
    ...(proxy === undefined ? {} : { prepare: (agent) => tunnel(agent, proxy) }),
  })
  // Before the URL is known, so that no signal is missed.
  const signalled = firstSignal()
  print(`${tap.url}\n`)
  const signal = await signalled
  await tap.close()
  capture.event('exit', { code: 0, signal })
  await capture.close()
  process.exit(0)
}

async function listen(options: Parameters<typeof HttpTap.listen>[0]): Promise<HttpTap> {
  try {
    return await HttpTap.listen(options)
  } catch (error) {
    await options.capture.close()
    const isInUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (isInUse) throw new UsageError(`Port ${options.port} is in use; choose another with --port`)
    throw error
  }
}

/** The first signal; a second one exits immediately. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        if (isStopping) process.exit(0)
        isStopping = true
        resolve(signal)
      })
  })
}

function contents(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--ca: ${error instanceof Error ? error.message : String(error)}`)
  }
}
