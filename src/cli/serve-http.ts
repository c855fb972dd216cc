import { readFileSync } from 'node:fs'
import {
  type TokenVerifier,
  type StaticToken,
  type ListenOptions,
  listen,
  tokens,
} from '../http.js'
import type { Server } from '../index.js'
import type { MetricsListening } from '../prometheus.js'
import { checkServer } from '../server/context.js'
import { syntaxErrorPosition } from '../jsonrpc/scan.js'
import { standardError } from '../transports/stdio-log.js'
import { UsageError } from './options.js'
import { portOf } from './port.js'

/** Serves over HTTP until SIGINT or SIGTERM, then completes the requests in flight. */
export async function serveHttp(
  server: Server,
  values: ReadonlyMap<string, string>,
  { maxMessage, log, logLevel }: Pick<ListenOptions, 'log' | 'logLevel'> & { maxMessage?: number },
): Promise<void> {
  const metrics = await metricsOf(server, values.get('metrics'))
  const listening = await listenOrFail(server, {
    ...(log === undefined ? {} : { log }),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...listenOptions(values),
    ...(maxMessage === undefined ? {} : { limits: { bodyBytes: maxMessage } }),
  }).catch(async (error: unknown) => {
    await metrics?.close()
    throw error
  })
  const path = values.get('capture')
  const recording = path === undefined ? undefined : await recordingOf(path, listening.url)
  standardError.write(`ccmcp: serving ${listening.url}\n`)
  if (metrics !== undefined) standardError.write(`ccmcp: serving metrics at ${metrics.url}\n`)
  if (values.has('sse'))
    standardError.write(`ccmcp: serving HTTP+SSE at ${new URL('/sse', listening.url).href}\n`)
  await new Promise<void>((resolve) => {
    const stop = () => {
      // A second signal exits immediately.
      process.once('SIGINT', () => process.exit(0)).once('SIGTERM', () => process.exit(0))
      resolve()
    }
    process.once('SIGINT', stop).once('SIGTERM', stop)
  })
  await listening.close()
  await metrics?.close()
  await recording?.end()
  process.exit()
}

/** Adds metrics to a server, and serves them on loopback. */
async function metricsOf(
  server: Server,
  text: string | undefined,
): Promise<MetricsListening | undefined> {
  if (text === undefined) return undefined
  const port = portOf(text, 'metrics')
  const { listenMetrics, prometheus } = await import('../prometheus.js')
  const metrics = prometheus()
  const internal = checkServer(server)
  internal.telemetry = internal.telemetry?.with(metrics) ?? metrics.compose([metrics])
  try {
    return await listenMetrics(metrics, { port })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')
      throw new UsageError(`Port ${port} is in use; choose another with --metrics`)
    throw error
  }
}

async function recordingOf(path: string, url: string): Promise<{ end(): Promise<void> }> {
  const { serverCapture, endCapture } = await import('./serve-capture.js')
  const { HttpRecorder } = await import('../tap/http-recorder.js')
  const capture = serverCapture(path, 'http')
  const recorder = new HttpRecorder(capture)
  recorder.start(url)
  return {
    async end() {
      recorder.stop()
      await endCapture(capture)
    },
  }
}

async function listenOrFail(server: Server, options: ListenOptions) {
  try {
    return await listen(server, options)
  } catch (error) {
    if (!(error instanceof Error)) throw new UsageError(String(error))
    const code = 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE')
      throw new UsageError(`Port ${options.port ?? 3000} is in use; choose another with --port`)
    if (code === 'UNAUTHENTICATED_BIND')
      throw new UsageError(
        `Binding to ${options.host ?? ''} would allow unauthenticated requests from other machines; add --tokens, or --unauthenticated to allow them`,
      )
    throw new UsageError(error.message)
  }
}

function listenOptions(values: ReadonlyMap<string, string>): ListenOptions {
  const list = (name: string) =>
    values
      .get(name)
      ?.split(',')
      .map((each) => each.trim())
  const [hosts, origins] = [list('hosts'), list('origins')]
  const [host, cert, key, file] = [
    values.get('host'),
    values.get('tls-cert'),
    values.get('tls-key'),
    values.get('tokens'),
  ]
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError('--tls-cert and --tls-key must be used together')
  return {
    port: portOf(values.get('port') ?? '3000'),
    ...(host === undefined ? {} : { host }),
    ...(hosts === undefined
      ? {}
      : { hosts: hosts.length === 1 && hosts[0] === 'any' ? 'any' : hosts }),
    ...(origins === undefined ? {} : { origins }),
    ...(file === undefined ? {} : { auth: authOf(file) }),
    ...(values.has('sse') ? { legacySse: true } : {}),
    ...(values.has('unauthenticated') ? { allowUnauthenticated: true } : {}),
    ...(cert === undefined || key === undefined
      ? {}
      : { tls: { cert: contents(cert, 'tls-cert'), key: contents(key, 'tls-key') } }),
  }
}

function authOf(file: string): TokenVerifier {
  try {
    return tokens(tokensOf(file))
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(`--tokens: ${error.message}`) : error
  }
}

function tokensOf(file: string): StaticToken[] {
  const text = contents(file, 'tokens')
  try {
    const list: unknown = JSON.parse(text)
    if (Array.isArray(list)) return list as StaticToken[] // validated by `tokens`
  } catch (error) {
    // The parser's message may quote the file, and with it a token.
    if (!(error instanceof SyntaxError)) throw error
    throw new UsageError(
      `--tokens: ${file} is not valid JSON at position ${syntaxErrorPosition(text)}`,
    )
  }
  throw new UsageError(`--tokens: ${file} must be a JSON array of { "token", "id", "scopes" }`)
}

function contents(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--${option}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
