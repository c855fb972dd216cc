import { checkNames, namesOf } from '../../schema/names.js'
import { checkRedirectUri } from './authorization-code.js'
import type { Grant } from './grants.js'
import type { ClientOptions } from './registration.js'
import type { TokenStore } from './store.js'
import { parseUrl } from '../../runtime.js'

export interface OAuthOptions {
  /** Shows a URL to the user. Resolves to the URL that the browser was redirected to, with its query. */
  authorize?: (url: string, signal: AbortSignal | undefined) => Promise<string | URL>
  /** Where the browser is redirected to; a function gets the one that the client is registered with. */
  redirectUri?: string | ((registered: string | undefined) => string | Promise<string>)
  /** The client, if it was registered beforehand or has a metadata document. */
  client?: ClientOptions
  /** Gets tokens without a user, instead of `authorize`. */
  grant?: Grant
  /** The scopes to request at first, instead of those that the server names. */
  scopes?: readonly string[]
  /** Keeps registrations and tokens (default: until the process ends). */
  store?: TokenStore
  /** Whether to bind tokens to a key (default: if the server requires it). */
  dpop?: boolean
  /** Whether the issuer in the metadata may differ by one trailing slash (default false). */
  issuerTrailingSlash?: boolean
  /** Whether to trust an authorization server that does not say it supports PKCE (default false). */
  assumePkce?: boolean
  /** Whether a public MCP server may have its authorization server at a private address (default false). */
  privateAddresses?: boolean
  /** Sends the requests to authorization servers (default: Node's HTTP modules, with the proxies of the environment; elsewhere the runtime's `fetch`). */
  fetch?: typeof globalThis.fetch
  /** Milliseconds for each request to an authorization server (default 30 s). */
  timeout?: number
  /** Ends an authorization that is in progress. Aborting a request only ends its waiting. */
  signal?: AbortSignal
}

const OPTIONS = namesOf<OAuthOptions>()(
  'authorize redirectUri client grant scopes store dpop issuerTrailingSlash assumePkce privateAddresses fetch timeout signal',
)
const CLIENT = namesOf<ClientOptions>()('id secret key method issuer metadataUrl name uri')

export function checkOptions(options: OAuthOptions): void {
  checkNames('oauth', options, OPTIONS)
  const { authorize, redirectUri, client = {}, grant, timeout = 1 } = options
  checkNames('oauth: "client"', client, CLIENT)
  const { id, secret, metadataUrl } = client
  if (secret !== undefined && id === undefined)
    throw new TypeError('oauth: "client.secret" needs "client.id"')
  if (metadataUrl !== undefined && !isMetadataUrl(metadataUrl))
    throw new TypeError('oauth: "client.metadataUrl" must be an https URL with a path')
  if (authorize !== undefined && redirectUri === undefined)
    throw new TypeError('oauth: "authorize" needs "redirectUri"')
  if (grant !== undefined && authorize !== undefined)
    throw new TypeError('oauth: "grant" works without "authorize"; leave one of them out')
  if (grant !== undefined && id === undefined)
    throw new TypeError('oauth: "grant" needs "client.id"')
  if (typeof redirectUri === 'string') checkRedirectUri(redirectUri)
  if (!(timeout > 0)) throw new TypeError('oauth: "timeout" must be a positive number')
}

function isMetadataUrl(text: string): boolean {
  const url = parseUrl(text)
  return url?.protocol === 'https:' && url.pathname !== '/'
}
