import type { ServerMetadata } from './discovery.js'
import { AuthorizationError } from './errors.js'
import { checkUrl, urlOf } from './http.js'
import { type TokenContext, type Tokens, requestTokens } from './token-endpoint.js'
import { chooseMethod } from './client-authentication.js'

/** What a grant without a user knows about the server. */
interface GrantContext extends TokenContext {
  readonly metadata: ServerMetadata
  readonly resource: string
  readonly scopes: readonly string[]
}

/** Gets tokens without a user: `clientCredentials()`, `jwtBearer(…)` or `enterpriseManaged(…)`. */
export interface Grant {
  request(context: GrantContext): Promise<Tokens>
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** The client acts for itself (RFC 6749, section 4.4), with `client: { id, secret }` or `client: { id, key }`. */
export function clientCredentials(): Grant {
  return {
    request: (context) =>
      requestTokens(context, 'client_credentials', {
        resource: context.resource,
        ...scopeOf(context),
      }),
  }
}

/** What an assertion is for. */
export interface AssertionRequest {
  /** The issuer of the authorization server: the audience of the assertion. */
  readonly issuer: string
  readonly resource: string
  readonly scopes: readonly string[]
}

/** A signed JWT is exchanged for a token (RFC 7523, section 2.1), such as that of a workload. */
export function jwtBearer(
  assertion: (request: AssertionRequest) => string | Promise<string>,
): Grant {
  return {
    async request(context) {
      const { metadata, resource, scopes } = context
      const jwt = await assertion({ issuer: metadata.issuer, resource, scopes })
      return await bearer(context, jwt)
    },
  }
}

export interface EnterpriseOptions {
  /** The ID token of the user, which the identity provider has issued to this application. */
  idToken(): string | Promise<string>
  /** The token endpoint of the identity provider. */
  tokenEndpoint: string
  /** The client id at the identity provider. */
  clientId: string
  /** Its secret there. */
  clientSecret?: string
}

/** The identity provider of an organization decides: its ID token is exchanged for an ID-JAG, and that for a token. */
export function enterpriseManaged(options: EnterpriseOptions): Grant {
  const { tokenEndpoint, clientId, clientSecret: secret } = options
  checkUrl(
    urlOf(tokenEndpoint, 'enterpriseManaged: "tokenEndpoint"'),
    'The token endpoint of the identity provider',
  )
  return {
    async request(context) {
      const provider: TokenContext = {
        http: context.http,
        metadata: { issuer: tokenEndpoint, token_endpoint: tokenEndpoint },
        client: {
          id: clientId,
          ...(secret === undefined ? {} : { secret }),
          method: chooseMethod(undefined, { secret }),
        },
      }
      const { accessToken } = await requestTokens(
        provider,
        TOKEN_EXCHANGE,
        {
          requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
          subject_token: await options.idToken(),
          subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
          audience: context.metadata.issuer,
          resource: context.resource,
          ...scopeOf(context),
        },
        { exchange: true },
      )
      return await bearer(context, accessToken)
    },
  }
}

async function bearer(context: GrantContext, assertion: string): Promise<Tokens> {
  if (typeof assertion !== 'string' || assertion === '')
    throw new AuthorizationError('AUTHORIZATION_FAILED', 'The assertion must be a JWT, as a string')
  return await requestTokens(context, JWT_BEARER, {
    assertion,
    resource: context.resource,
    ...scopeOf(context),
  })
}

function scopeOf({ scopes }: GrantContext): { scope?: string } {
  return scopes.length === 0 ? {} : { scope: scopes.join(' ') }
}
