import { readFileSync } from 'node:fs'
import { type Authorization, type KnownToken, type ListenOptions, listen, tokens } from '../http.js'
import type { Server } from '../index.js'
import { standardError } from '../transports/stdio-log.js'
import { UsageError } from './options.js'

/** Serves over HTTP until a signal ends it: then what is under way is finished. */
export async function serveHttp(
  server: Server,
  given: ReadonlyMap<string, string>,
  { maxMessage, log, logLevel }: Pick<ListenOptions, 'log' | 'logLevel'> & { maxMessage?: number },
): Promise<void> {
  const listening = await start(server, {
    ...(log === undefined ? {} : { log }),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...listenOptions(given),
    ...(maxMessage === undefined ? {} : { limits: { bodyBytes: maxMessage } }),
  })
  standardError.write(`ccmcp: serving ${listening.url}\n`)
  await new Promise<void>((resolve) => {
    const stop = () => {
      // The second signal means now.
      process.once('SIGINT', () => process.exit(0)).once('SIGTERM', () => process.exit(0))
      resolve()
    }
    process.once('SIGINT', stop).once('SIGTERM', stop)
  })
  await listening.close()
  process.exit()
}

async function start(server: Server, options: ListenOptions) {
  try {
    return await listen(server, options)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (reason.includes('EADDRINUSE'))
      throw new UsageError(`Port ${options.port ?? 3000} is in use; choose another with --port`)
    if (reason.includes('"allowUnauthenticated: true"'))
      throw new UsageError(
        `On ${options.host ?? ''} anybody who reaches this machine could call; add --tokens, or --unauthenticated if that is meant`,
      )
    throw new UsageError(reason)
  }
}

function listenOptions(given: ReadonlyMap<string, string>): ListenOptions {
  const list = (name: string) =>
    given
      .get(name)
      ?.split(',')
      .map((each) => each.trim())
  const [hosts, origins] = [list('hosts'), list('origins')]
  const [host, cert, key, file] = [
    given.get('host'),
    given.get('tls-cert'),
    given.get('tls-key'),
    given.get('tokens'),
  ]
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError('--tls-cert and --tls-key belong together')
  return {
    port: portOf(given.get('port') ?? '3000'),
    ...(host === undefined ? {} : { host }),
    ...(hosts === undefined
      ? {}
      : { hosts: hosts.length === 1 && hosts[0] === 'any' ? 'any' : hosts }),
    ...(origins === undefined ? {} : { origins }),
    ...(file === undefined ? {} : { auth: authOf(file) }),
    ...(given.has('unauthenticated') ? { allowUnauthenticated: true } : {}),
    ...(cert === undefined || key === undefined
      ? {}
      : { tls: { cert: contents(cert, 'tls-cert'), key: contents(key, 'tls-key') } }),
  }
}

function portOf(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new UsageError(`--port must be a number up to 65535, not ${JSON.stringify(text)}`)
  return Number(text)
}

function authOf(file: string): Authorization {
  try {
    return tokens(tokensOf(file))
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(`--tokens: ${error.message}`) : error
  }
}

function tokensOf(file: string): KnownToken[] {
  try {
    const list: unknown = JSON.parse(contents(file, 'tokens'))
    if (Array.isArray(list)) return list as KnownToken[] // `tokens` looks at each of them
  } catch (error) {
    // The reason of a parser may quote the file, and with it a token.
    if (!(error instanceof SyntaxError)) throw error
    throw new UsageError(
      `--tokens: ${file} is no JSON${/ at position \d+/.exec(error.message)?.[0] ?? ''}`,
    )
  }
  throw new UsageError(`--tokens: ${file} must be a JSON list of { "token", "id", "scopes" }`)
}

function contents(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--${option}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
