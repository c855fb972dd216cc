import { createInterface } from 'node:readline'
import { isLoopback } from '../auth/loopback.js'
import { Secrets } from '../auth/secrets.js'
import { type Authorizer, type Client, RpcError, connect, http } from '../client.js'
import { AuthorizationError, type OAuth, type OAuthOptions, oauth } from '../oauth.js'
import { VERSION } from '../version.js'
import { type Command, HELP } from './command.js'
import { LoginCallback } from './login-callback.js'
import { type Arguments, CommandError, type Options, UsageError } from './options.js'
import { hideInOutput, print, printError, redacted, styled } from './print.js'
import {
  EXPOSED,
  type LoginOptions,
  isExposed,
  saveLoginOptions,
  serverName,
} from './stored-login.js'
import { TokenFile } from './token-file.js'
import { abortOnSignal } from './signals.js'
import { parseUrl } from '../runtime.js'

/** Seconds for the whole login. */
const TIMEOUT = 300

const OPTIONS = {
  scope: {
    value: 'SCOPES',
    description: 'scopes to request, separated by spaces (default: those the server names)',
  },
  'client-id': {
    value: 'ID',
    description: 'id of a client that is registered at the authorization server',
  },
  'client-secret-env': {
    value: 'NAME',
    description: 'environment variable with the secret of that client',
  },
  'client-metadata-url': { value: 'URL', description: 'URL of a client ID metadata document' },
  'redirect-uri': {
    value: 'URI',
    description:
      'redirect URI on this computer (default http://127.0.0.1:PORT/callback, any free port)',
  },
  'no-browser': { description: 'show the URL instead; the callback URL can be pasted or piped in' },
  'issuer-trailing-slash': { description: 'accept an issuer that differs by one trailing slash' },
  'assume-pkce': {
    description: 'trust an authorization server that does not say it supports PKCE',
  },
  'private-addresses': { description: 'accept an authorization server at a private address' },
  timeout: { value: 'SECONDS', description: `time for the login (default ${TIMEOUT})` },
} as const satisfies Options

export const loginCommand: Command = {
  usage: 'login URL [options]',
  description:
    'Logs in to a server at a URL: opens the browser, and keeps the tokens for the other commands.',
  notes: `The tokens are kept in ~/.config/ccmcp/tokens.json, which only you can read (below XDG_CONFIG_HOME if it is set; below APPDATA on Windows).
If several processes log in at the same time, one of them opens the browser.

Exit codes: 0 success, 1 the login failed, 2 an invalid command line, 3 no connection.`,
  options: { ...OPTIONS, ...HELP },
  positionals: [1, 1],
  run: (args) => abortOnSignal((signal) => logIn(args, signal)),
}

async function logIn(args: Arguments, interrupted: AbortSignal): Promise<void> {
  const { values } = args
  const url = urlArgument(args.positionals[0])
  if (isExposed(url)) throw new UsageError(EXPOSED)
  const late = AbortSignal.timeout(secondsOf(values.get('timeout')) * 1000)
  const signal = AbortSignal.any([interrupted, late])
  const session = new LoginSession(values, signal)
  try {
    const name = await session.run(url)
    await session.close(
      'Logged in',
      `ccmcp is logged in to ${url.origin}. You can close this page.`,
    )
    print(styled('name', 'Logged in'), ` to ${name}\n`)
  } catch (error) {
    const why = late.aborted
      ? 'the login was not completed in time; try again, or raise --timeout'
      : reasonOf(error)
    // Also after an interrupt: the callback server would keep the process alive.
    await session.close('Not logged in', `The login to ${url.origin} failed: ${why}`)
    interrupted.throwIfAborted()
    throw error instanceof CommandError
      ? error
      : new CommandError(isOAuth(error) || late.aborted ? 1 : 3, `Not logged in: ${why}`)
  }
}

/** One login: the browser, the callback and the connection that needs them. */
class LoginSession {
  readonly #values: ReadonlyMap<string, string>
  readonly #signal: AbortSignal
  readonly #authorizer: OAuth
  readonly #store: TokenFile
  readonly #options: LoginOptions
  readonly #secrets = new Secrets()
  /** Whether the user was asked. */
  #hasAuthorized = false
  /** Undefined until the browser is needed. */
  #callback: LoginCallback | undefined

  constructor(values: ReadonlyMap<string, string>, signal: AbortSignal) {
    this.#values = values
    hideInOutput(this.#secrets)
    this.#signal = signal
    this.#store = new TokenFile(undefined, { signal })
    this.#options = {
      issuerTrailingSlash: values.has('issuer-trailing-slash'),
      assumePkce: values.has('assume-pkce'),
      privateAddresses: values.has('private-addresses'),
    }
    const scope = values.get('scope')
    const given = redirectOf(values.get('redirect-uri'))
    this.#authorizer = asUsage(() =>
      oauth({
        authorize: (url) => this.#authorize(url),
        redirectUri: async (registered) => {
          this.#callback ??= await LoginCallback.listen(given, registered)
          // It may have been interrupted meanwhile.
          if (signal.aborted) await this.#callback.close('', '')
          return this.#callback.redirectUri
        },
        client: clientOf(values),
        store: this.#store,
        ...this.#options,
        signal,
        ...(scope === undefined ? {} : { scopes: scope.split(' ').filter((each) => each !== '') }),
      }),
    )
  }

  /** Connects, which leads to a login if it is necessary. Resolves to the name of the server. */
  async run(url: URL): Promise<string> {
    const timeout = 2_000_000_000
    const authorizer: Authorizer = {
      headers: async (request) => {
        const headers = await this.#authorizer.headers(request)
        this.#secrets.add(headers)
        return headers
      },
      challenged: (challenge, signal) => this.#authorizer.challenged(challenge, signal),
    }
    const client = await connect(http(url, { authorizer }), {
      info: { name: 'ccmcp', version: VERSION },
      timeout,
      signal: this.#signal,
    })
    try {
      // Some servers require authorization for some requests only.
      if (!(await this.#hasToken(url))) await listTools(client, this.#signal)
      if (!(await this.#hasToken(url)))
        throw new CommandError(1, `${url.href} does not require a login`)
      // Tokens of an earlier login keep its options.
      if (this.#hasAuthorized) await saveLoginOptions(this.#store, serverName(url), this.#options)
      return client.server === undefined ? url.href : `${client.server.name} at ${url.href}`
    } finally {
      await client.close()
    }
  }

  async close(title: string, text: string): Promise<void> {
    await this.#callback?.close(title, redacted(text))
  }

  async #hasToken(url: URL): Promise<boolean> {
    return 'authorization' in (await this.#authorizer.headers({ method: 'POST', url }))
  }

  async #authorize(url: string): Promise<string> {
    const callback = this.#callback
    if (callback === undefined) throw new Error('there is no callback server')
    this.#hasAuthorized = true
    const state = new URL(url).searchParams.get('state') ?? ''
    const waiting = callback.wait(state, this.#signal)
    // It is awaited below, but may be aborted before.
    waiting.catch(() => {})
    if (this.#values.has('no-browser')) return await this.#withoutBrowser(url, callback, waiting)
    const { openBrowser } = await import('./open-browser.js')
    const opened = await openBrowser(url)
    printError(
      opened
        ? 'Log in with the browser. If it does not open, open this URL:\n'
        : 'The browser could not be started. Open this URL:\n',
      `${url}\n`,
    )
    return await waiting
  }

  async #withoutBrowser(
    url: string,
    callback: LoginCallback,
    waiting: Promise<string>,
  ): Promise<string> {
    printError(
      `Open this URL in a browser:\n${url}\n`,
      'If the browser is on another computer, paste here the URL that it is redirected to.\n',
    )
    const lines = createInterface({ input: process.stdin })
    lines.on('line', (line) => {
      if (line.trim() !== '' && !callback.offer(line))
        printError('This is not the callback URL of this login.\n')
    })
    try {
      return await waiting
    } finally {
      lines.close()
    }
  }
}

async function listTools(client: Client, signal: AbortSignal): Promise<void> {
  try {
    await client.request('tools/list', {}, { signal })
  } catch (error) {
    // Without tools; the server has accepted the request.
    if (!(error instanceof RpcError)) throw error
  }
}

export function urlArgument(word = ''): URL {
  const url = parseUrl(word)
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(`${JSON.stringify(word)} is not a URL; expected https://HOST/PATH`)
}

function secondsOf(text: string | undefined): number {
  if (text === undefined) return TIMEOUT
  const seconds = Number(text)
  if (text.trim() !== '' && seconds > 0 && seconds <= 2_000_000) return seconds
  throw new UsageError(`--timeout must be a number of seconds, not ${JSON.stringify(text)}`)
}

function redirectOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const { protocol = '', hostname = '', hash = '' } = parseUrl(text) ?? {}
  if (protocol === 'http:' && isLoopback(hostname) && hash === '') return text
  throw new UsageError(
    `--redirect-uri must be on this computer, such as http://localhost:8123/callback, not ${JSON.stringify(text)}`,
  )
}

function clientOf(values: ReadonlyMap<string, string>): NonNullable<OAuthOptions['client']> {
  const id = values.get('client-id')
  const metadataUrl = values.get('client-metadata-url')
  const variable = values.get('client-secret-env')
  if (variable !== undefined && id === undefined)
    throw new UsageError('--client-secret-env needs --client-id')
  const secret = variable === undefined ? undefined : process.env[variable]
  if (variable !== undefined && (secret === undefined || secret === ''))
    throw new UsageError(
      `--client-secret-env: the variable ${JSON.stringify(variable)} is not set; it must have the secret`,
    )
  return {
    name: 'ccmcp',
    ...(id === undefined ? {} : { id }),
    ...(secret === undefined ? {} : { secret }),
    ...(metadataUrl === undefined ? {} : { metadataUrl }),
  }
}

/** An invalid option of OAuth is an error of the command line. */
function asUsage<Result>(create: () => Result): Result {
  try {
    return create()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(error.message)
  }
}

/** The failure of OAuth behind an error. */
function isOAuth(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (at instanceof AuthorizationError) return true
  return false
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.split('\n', 1)[0] ?? ''
}
