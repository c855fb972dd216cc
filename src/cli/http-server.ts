import { validateHeaderName, validateHeaderValue } from 'node:http'
import { Secrets } from '../auth/secrets.js'
import { type Authorizer, http } from '../client.js'
import { proxyOf } from '../transports/http/client/node-proxy.js'
import { type Credentials, explainFailure } from './http-failure.js'
import { UsageError, valuesOfRepeated } from './options.js'
import { hideInOutput, warn } from './print.js'
import type { ServerTarget } from './server-target.js'
import { storedLogin } from './stored-login.js'
import { parseUrl } from '../runtime.js'

export function isUrl(argument: string): boolean {
  return /^https?:/i.test(argument)
}

/** How a server at a URL is accessed, with the headers and the token of the command line. */
interface HttpAccess {
  url: URL
  headers: Readonly<Record<string, string>>
  authorizer: Authorizer
  /** What the requests are sent with. */
  secrets: Secrets
  /** One line about a failure: what is wrong and what to try. */
  explain(error: Error): string
}

export function httpAccess(given: string, values: ReadonlyMap<string, string>): HttpAccess {
  const url = urlOf(given)
  if (values.has('framing')) throw new UsageError('--framing is for servers on stdio, not for URLs')
  const headers = headersOf(valuesOfRepeated(values.get('header')))
  const variable = values.get('token-env')
  const authorization = headers.get('authorization')
  if (variable !== undefined && authorization !== undefined)
    throw new UsageError('--token-env and a header "Authorization" cannot be combined; use one')
  if (authorization !== undefined && !isPrivate(url))
    warn(`the header "Authorization" is sent unencrypted to ${url.origin}; use https:`)
  const token = variable === undefined ? undefined : tokenOf(variable, url)
  const secrets = new Secrets(Object.fromEntries(headers))
  hideInOutput(secrets)
  const credentials: Credentials = { variable, secrets, challenge: undefined }
  const isGiven = authorization !== undefined
  const source = token === undefined ? (isGiven ? undefined : storedLogin(url)) : bearer(token)
  return {
    url,
    headers: Object.fromEntries(headers),
    authorizer: authorizerOf(url, credentials, source),
    secrets,
    explain: (error) => explainFailure(error, url, credentials),
  }
}

/** A server at a URL. */
export function httpServer(
  given: string,
  values: ReadonlyMap<string, string>,
  limits: { maxMessage?: number },
): ServerTarget {
  const { url, headers, authorizer, explain } = httpAccess(given, values)
  const target = asUsage(() => http(url, { headers, authorizer, ...limits }))
  return { target, label: url.origin, explain }
}

/** Authorizes requests to the origin of the URL only, and remembers what was sent and what the server asks for. */
function authorizerOf(
  { origin }: URL,
  credentials: Credentials,
  source: Authorizer | undefined,
): Authorizer {
  return {
    async headers(request) {
      if (request.url.origin !== origin) return {}
      const headers = (await source?.headers(request)) ?? {}
      credentials.secrets.add(headers)
      return headers
    },
    async challenged(challenge, signal) {
      credentials.challenge = challenge.header
      return (await source?.challenged(challenge, signal)) ?? false
    },
  }
}

function bearer(token: string): Authorizer {
  return {
    headers: () => Promise.resolve({ authorization: `Bearer ${token}` }),
    challenged: () => Promise.resolve(false),
  }
}

/** The URL of a server. Throws a UsageError if it is not one. */
export function urlOf(given: string): URL {
  const url = parseUrl(given)
  if (url === undefined || url.hostname === '')
    throw new UsageError(`${JSON.stringify(given)} is not a URL; expected https://HOST/PATH`)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      'The URL must not contain a user name or password; pass a token with --token-env NAME, or a header with --header',
    )
  return url
}

function headersOf(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):([\s\S]*)$/.exec(line) ?? []
    const key = name.trim().toLowerCase()
    if (key === '')
      throw new UsageError(`--header must be 'Name: value', not ${JSON.stringify(shown(line))}`)
    try {
      validateHeaderName(key)
    } catch {
      throw new UsageError(
        `--header: ${JSON.stringify(name.trim())} is not a header name; expected letters, digits and "-", as in 'X-Team: blue'`,
      )
    }
    headers.set(key, headerValue(name.trim(), value.trim(), headers.get(key)))
  }
  return headers
}

/** The value is not shown in errors: it may be a secret. */
function headerValue(name: string, value: string, before: string | undefined): string {
  try {
    validateHeaderValue(name, value)
  } catch {
    throw new UsageError(
      `--header: the value of ${name} has characters that a header cannot have; expected one line of ASCII text`,
    )
  }
  if (value === '')
    throw new UsageError(
      `--header: ${name} has no value; write '${name}: value', and check that a variable in it is set`,
    )
  return before === undefined ? value : `${before}, ${value}`
}

/** The part of a header before anything that may be a secret. */
function shown(line: string): string {
  return line.length > 20 ? `${line.slice(0, 20)}…` : line
}

function tokenOf(variable: string, url: URL): string {
  const problem = (text: string) => new UsageError(`--token-env: ${text}`)
  if (!/^[A-Za-z_]\w*$/.test(variable))
    throw problem(
      'expected the name of an environment variable, such as MCP_TOKEN; the token itself does not belong on a command line',
    )
  const token = process.env[variable]
  if (token === undefined)
    throw problem(`the variable ${variable} is not set; set it with: export ${variable}=…`)
  if (token === '') throw problem(`the variable ${variable} is empty; it must have the token`)
  if (/^bearer\s/i.test(token))
    throw problem(`the variable ${variable} must have the token only, without "Bearer"`)
  if (!/^[!-~]+$/.test(token))
    throw problem(
      `the variable ${variable} is not a token: it has spaces, line breaks or characters other than ASCII`,
    )
  if (!isPrivate(url))
    throw problem(
      `a token is sent over https: only (http: on this machine), not to ${url.origin}; use https://${url.host}${url.pathname}`,
    )
  if (url.protocol === 'http:' && proxyOf(url, process.env) !== undefined)
    throw problem(
      `the token would go to the proxy of HTTP_PROXY unencrypted; set NO_PROXY=${url.hostname}`,
    )
  return token
}

/** Whether nobody else on the network can read what is sent to the URL. */
function isPrivate({ protocol, hostname }: URL): boolean {
  if (protocol === 'https:') return true
  return /^(?:localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}

/** An invalid option of the transport is an error of the command line. */
function asUsage<Result>(create: () => Result): Result {
  try {
    return create()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(error.message.replace(/^http: /, '--header: '))
  }
}
