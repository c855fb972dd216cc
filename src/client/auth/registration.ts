import { isLoopback } from '../../auth/loopback.js'
import { isObject } from '../../jsonrpc/message.js'
import { type ClientKey, chooseMethod } from './client-authentication.js'
import type { ServerMetadata } from './discovery.js'
import { AuthorizationError, describeError, shown } from './errors.js'
import { type OAuthHttp, UNREACHABLE } from './http.js'
import type { ClientAuthMethod, Records, RegisteredClient, Registration } from './store.js'

/** The client, as authorization servers know it. */
export interface ClientOptions {
  /** The client id of a client that was registered beforehand. */
  id?: string
  /** Its secret. */
  secret?: string
  /** Its private key, for `private_key_jwt`. */
  key?: ClientKey
  /** How it authenticates at the token endpoint, if the choice by the server's metadata is wrong. */
  method?: ClientAuthMethod
  /** The issuer that the client id belongs to: it is not sent to any other. */
  issuer?: string
  /** The https URL of a client ID metadata document, which is the client id at servers that support them. */
  metadataUrl?: string
  /** The name that users see when the client registers itself (default `ccmcp`). */
  name?: string
  /** The home page of the client, for its registration. */
  uri?: string
}

export interface RegistrationContext {
  readonly http: OAuthHttp
  readonly records: Records
  readonly metadata: ServerMetadata
  readonly options: ClientOptions
}

/** The configured client, if there is one. */
export function configuredClient({
  metadata,
  options,
}: Pick<RegistrationContext, 'metadata' | 'options'>): RegisteredClient | undefined {
  const { id, secret, key, issuer, method } = options
  if (id === undefined) return undefined
  if (issuer !== undefined && issuer !== metadata.issuer)
    throw new AuthorizationError(
      'REGISTRATION_FAILED',
      `The client ${shown(id)} is registered at ${shown(issuer)}, but the server now uses ${shown(metadata.issuer)}. Register it there and change "client"`,
    )
  return {
    id,
    ...(secret === undefined ? {} : { secret }),
    method: method ?? chooseMethod(metadata.token_endpoint_auth_methods_supported, { secret, key }),
  }
}

/** The client for an authorization with a redirect URI: configured, else a metadata document, else registered now. */
export async function clientFor(
  context: RegistrationContext,
  redirectUri: string,
): Promise<RegisteredClient> {
  const { records, metadata, options } = context
  const configured = configuredClient(context)
  if (configured !== undefined) return configured
  const { metadataUrl, key } = options
  if (metadataUrl !== undefined && metadata.client_id_metadata_document_supported === true)
    return { id: metadataUrl, method: key === undefined ? 'none' : 'private_key_jwt' }
  const registered = await records.registration(metadata.issuer)
  if (registered !== undefined && isUsable(registered, redirectUri)) return registered
  const registration = await register(context, redirectUri)
  await records.saveRegistration(metadata.issuer, registration)
  return registration
}

function isUsable({ redirectUri, secretExpires }: Registration, wanted: string): boolean {
  return redirectUri === wanted && (secretExpires === undefined || secretExpires > Date.now())
}

/** The authentication methods that we can register with, in order of preference. */
const METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const

/** Dynamic registration (RFC 7591). */
async function register(
  { http, metadata, options }: RegistrationContext,
  redirectUri: string,
): Promise<Registration> {
  const { issuer, registration_endpoint: endpoint } = metadata
  if (endpoint === undefined)
    throw new AuthorizationError(
      'REGISTRATION_FAILED',
      `${shown(issuer)} does not let clients register themselves. Register a client there with the redirect URI ${redirectUri}, and set "client: { id, secret }"`,
    )
  // RFC 8414: Basic is the default.
  const supported = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const { name = 'ccmcp', uri } = options
  const request = {
    client_name: name,
    ...(uri === undefined ? {} : { client_uri: uri }),
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: METHODS.find((method) => supported.includes(method)) ?? 'none',
    application_type: isLoopback(new URL(redirectUri).hostname) ? 'native' : 'web',
  }
  const response = await http.fetch(
    endpoint,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(request),
    },
    'The registration endpoint',
    'REGISTRATION_FAILED',
  )
  const answer: unknown = await response.json().catch(() => undefined)
  if (!response.ok) throw refused(response.status, answer, redirectUri)
  const registration = isObject(answer) ? registrationOf(answer, supported, redirectUri) : undefined
  if (registration !== undefined) return registration
  throw new AuthorizationError(
    'REGISTRATION_FAILED',
    `The registration endpoint of ${shown(issuer)} returned no client_id`,
  )
}

function registrationOf(
  answer: Readonly<Record<string, unknown>>,
  supported: readonly string[],
  redirectUri: string,
): Registration | undefined {
  const {
    client_id: id,
    client_secret: secret,
    client_secret_expires_at: expires,
    token_endpoint_auth_method: given,
  } = answer
  if (typeof id !== 'string' || id === '') return undefined
  const known = typeof secret === 'string' && secret !== '' ? secret : undefined
  const asked = METHODS.find((method) => method === given)
  const fits = asked !== undefined && (asked === 'none' || known !== undefined)
  return {
    id,
    ...(known === undefined ? {} : { secret: known }),
    method: fits ? asked : chooseMethod(supported, { secret: known }),
    redirectUri,
    // 0 means never.
    ...(typeof expires === 'number' && expires > 0 ? { secretExpires: expires * 1000 } : {}),
  }
}

function refused(status: number, answer: unknown, redirectUri: string): AuthorizationError {
  const { error, error_description: description } = isObject(answer) ? answer : {}
  const said = typeof error === 'string' ? `: ${describeError(error, description)}` : ''
  const hint =
    status === 404
      ? '. The server may need an API key instead of OAuth: pass it in "headers"'
      : `. Register a client with the redirect URI ${redirectUri}, and set "client: { id, secret }"`
  return new AuthorizationError(
    'REGISTRATION_FAILED',
    `The registration endpoint responded with HTTP ${status}${said}${hint}`,
    status >= 500 || status === 429 ? UNREACHABLE : undefined,
  )
}
