import type { Secrets } from '../auth/secrets.js'
import { RequestFailedError } from '../client.js'

/** What was sent to authorize the requests, and what the server said to it. */
export interface Credentials {
  /** The environment variable of the token. */
  variable: string | undefined
  /** What the requests were sent with: a server may repeat it. */
  secrets: Secrets
  /** The `WWW-Authenticate` header of the last refusal. */
  challenge: string | undefined
}

/** One line about a failed connection or request to a URL: what is wrong and what to try. */
export function explainFailure(error: Error, url: URL, credentials: Credentials): string {
  const failure = requestFailureOf(error)
  const address = `${url.origin}${url.pathname}`
  return credentials.secrets.redact(
    failure === undefined
      ? `${firstLine(error.message)} (${address})`
      : `Cannot use ${address}: ${reasonOf(failure, url, credentials)}${mayHaveRun(error, failure)}`,
  )
}

/** The failed HTTP request behind an error. */
function requestFailureOf(error: unknown): RequestFailedError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (at instanceof RequestFailedError) return at
  return undefined
}

/** A call that got no response may have been executed; a failed connection has executed nothing. */
function mayHaveRun(error: Error, { executed }: RequestFailedError): string {
  const isCall = error instanceof RequestFailedError
  return isCall && executed === 'maybe' ? '; the server may have executed the request' : ''
}

function reasonOf(failure: RequestFailedError, url: URL, credentials: Credentials): string {
  const { code, status, message } = failure
  if (code === 'NETWORK') return networkReason(failure, url)
  if (code === 'INVALID_RESPONSE' && /text\/html/.test(message))
    return `it responded with a web page, not with MCP. ${TRY_PATH}`
  if (code === 'INVALID_RESPONSE')
    return `${firstLine(message)}. It is probably not an MCP endpoint. ${TRY_PATH}`
  if (code !== 'HTTP_STATUS' || status === undefined) return firstLine(message)
  const said = firstLine(message).replace(/^The server responded with HTTP \d+:? ?/, '')
  const suffix = said === '' ? '' : ` ("${said}")`
  if (status >= 300 && status < 400) return firstLine(message)
  return `HTTP ${status}${suffix}: ${statusReason(status, credentials)}`
}

const TRY_PATH = 'Check the path of the URL; many servers use /mcp'

function statusReason(status: number, { variable, challenge, secrets }: Credentials): string {
  switch (status) {
    case 401: {
      const asked = challengeText(challenge, secrets)
      return variable === undefined
        ? `the server requires authorization${asked}. Log in with "ccmcp login URL", or pass a token with --token-env NAME, or another header with --header`
        : `the server does not accept the token in ${variable}${asked}. It may have expired`
    }
    case 403:
      return `the server refuses access${challengeText(challenge, secrets)}`
    case 404:
      return `there is no MCP endpoint here. ${TRY_PATH}`
    case 405:
      return `the server does not accept POST here. ${TRY_PATH}`
    case 406:
    case 415:
      return `the server does not accept MCP messages here. ${TRY_PATH}`
    case 407:
      return 'the proxy requires authorization. Put it into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT'
    case 429:
      return 'too many requests. Try again later'
    default:
      return status >= 500
        ? 'the server has failed. Try again later, or look into its log'
        : `the server refuses the request. ${TRY_PATH}`
  }
}

/** What a challenge says for people: the scopes that are needed, and why. */
function challengeText(challenge: string | undefined, secrets: Secrets): string {
  const parameter = (name: string) => {
    const quoted = new RegExp(`\\b${name}="((?:[^"\\\\]|\\\\.)*)"`, 'i').exec(challenge ?? '')?.[1]
    const text = quoted?.replaceAll(/\\(.)/g, '$1')
    return text === undefined ? undefined : secrets.redact(text).slice(0, 200)
  }
  const scope = parameter('scope')
  const parts = [
    ...(scope === undefined ? [] : [`scope ${JSON.stringify(scope)}`]),
    parameter('error_description') ?? parameter('error') ?? '',
  ].filter((part) => part !== '')
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

function networkReason(
  failure: RequestFailedError,
  { protocol, hostname, host, port }: URL,
): string {
  const code = codeOf(failure)
  const at = port === '' ? host : `${hostname}, port ${port}`
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host ${hostname} was not found. Check its name and your network connection`
    case 'ECONNREFUSED':
      return `nothing accepts connections at ${at}. Is the server running, and is this its port?`
    case 'ECONNRESET':
    case 'EPIPE':
      return `the connection was closed. ${protocol === 'http:' ? 'If the server uses TLS, try https:' : 'Try again later'}`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `the host ${hostname} cannot be reached (${code}). Check your network connection, proxy and firewall`
    case 'EPROTO':
      return 'the server does not speak TLS here. Try http: instead of https:, or another port'
    case 'CERT_HAS_EXPIRED':
      return 'the certificate of the server has expired. It must be renewed'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `the certificate of the server is for another host, not ${hostname}`
    default:
  }
  if (code.startsWith('HPE_'))
    return `the server does not speak HTTP here. ${protocol === 'http:' ? 'If it uses TLS, try https:' : 'Check the port'}`
  if (/CERT|SIGNATURE|ISSUER/.test(code))
    return `the certificate of the server is not trusted (${code}). Set NODE_EXTRA_CA_CERTS to the PEM file of its certificate authority`
  return firstLine(failure.message)
}

function codeOf(error: Error): string {
  for (let at: unknown = error.cause, depth = 0; at instanceof Error && depth < 5; depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
    // Node tries all addresses of a host, and has an error for each.
    at = at instanceof AggregateError ? at.errors[0] : at.cause
  }
  return ''
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.trim() ?? ''
}
