// The suite's scenarios about authorization: what the client is configured with, and what it does once it is connected.

/** The client ID metadata document that the suite expects. */
const METADATA_URL = 'https://conformance-test.local/client-metadata.json'

/** Instead of a browser: requests the authorization URL, and takes the callback from the redirect. */
async function authorize(url) {
  const response = await fetch(url, { redirect: 'manual' })
  const callback = response.headers.get('location')
  if (callback === null) throw new Error(`HTTP ${response.status} instead of a redirect`)
  return callback
}

const user = (client = { metadataUrl: METADATA_URL }) => ({
  authorize,
  redirectUri: 'http://localhost:3000/callback',
  client,
})

/** The options of `oauth` for each scenario that needs others than those of a user. */
const OPTIONS = {
  'auth/pre-registration': (_, { client_id: id, client_secret: secret }) => user({ id, secret }),
  'auth/client-credentials-basic': (
    { clientCredentials },
    { client_id: id, client_secret: secret },
  ) => ({ client: { id, secret }, grant: clientCredentials() }),
  'auth/client-credentials-jwt': (
    { clientCredentials },
    { client_id: id, private_key_pem: key, signing_algorithm: algorithm },
  ) => ({ client: { id, key: { key, algorithm } }, grant: clientCredentials() }),
  'auth/enterprise-managed-authorization': ({ enterpriseManaged }, context) => ({
    client: { id: context.client_id, secret: context.client_secret },
    grant: enterpriseManaged({
      idToken: () => context.idp_id_token,
      tokenEndpoint: context.idp_token_endpoint,
      clientId: context.idp_client_id,
    }),
  }),
  'auth/wif-jwt-bearer': ({ jwtBearer }, { client_id: id, valid_jwt: jwt }) => ({
    client: { id },
    grant: jwtBearer(() => jwt),
  }),
}

/**
 * The number of successful checks of each scenario. In some, the suite checks every request; with a handshake their
 * number varies, because the client also opens a stream.
 */
const CHECKS = {
  '2025-11-25': {
    'basic-cimd': 12,
    'client-credentials-basic': 7,
    'client-credentials-jwt': 7,
    dpop: 9,
    'dpop-nonce': 11,
    'enterprise-managed-authorization': 8,
    'metadata-default': 17,
    'metadata-var1': 17,
    'metadata-var2': 17,
    'metadata-var3': 17,
    'pre-registration': 12,
    'scope-from-scopes-supported': 13,
    'scope-from-www-authenticate': 13,
    'scope-omitted-when-undefined': 13,
    'scope-retry-limit': 9,
    'scope-step-up': 21,
    'token-endpoint-auth-basic': 18,
    'token-endpoint-auth-none': 18,
    'token-endpoint-auth-post': 18,
    'wif-jwt-bearer': 7,
  },
  '2026-07-28': {
    'authorization-server-migration': 28,
    'basic-cimd': 13,
    'client-credentials-basic': 8,
    'client-credentials-jwt': 8,
    dpop: 13,
    'dpop-nonce': 15,
    'enterprise-managed-authorization': 9,
    'iss-normalized': 8,
    'iss-not-advertised': 15,
    'iss-supported': 15,
    'iss-supported-missing': 8,
    'iss-unexpected': 8,
    'iss-wrong-issuer': 8,
    'metadata-default': 19,
    'metadata-issuer-mismatch': 3,
    'metadata-var1': 19,
    'metadata-var2': 19,
    'metadata-var3': 19,
    'offline-access-not-supported': 15,
    'offline-access-scope': 13,
    'pre-registration': 13,
    'resource-mismatch': 2,
    'scope-from-scopes-supported': 15,
    'scope-from-www-authenticate': 15,
    'scope-omitted-when-undefined': 15,
    'scope-retry-limit': 13,
    'scope-step-up': 26,
    'token-endpoint-auth-basic': 20,
    'token-endpoint-auth-none': 20,
    'token-endpoint-auth-post': 20,
    'wif-jwt-bearer': 8,
  },
  /** Servers of the first revision with authorization, which the suite runs apart. */
  backcompat: {
    '2025-03-26-oauth-endpoint-fallback': 7,
    '2025-03-26-oauth-metadata-backcompat': 12,
  },
}

/** The rows of the scenarios for client-legs.mjs. */
export function authorizationScenarios(leg) {
  const rows = Object.entries(CHECKS[leg])
  return Object.fromEntries(rows.map(([name, checks]) => [`auth/${name}`, { checks }]))
}

/** Scenarios in which the client must give up, with its error. */
export const REFUSED = new Map([
  ['auth/resource-mismatch', /is for https:\/\/evil\.example\.com\/mcp, not for/],
  ['auth/iss-supported-missing', /"iss" \(issuer\) missing/],
  ['auth/iss-wrong-issuer', /unexpected "iss"/],
  ['auth/iss-unexpected', /unexpected "iss"/],
  ['auth/iss-normalized', /unexpected "iss"/],
  ['auth/metadata-issuer-mismatch', /has another issuer, https:\/\/attacker\.example\.com/],
  ['auth/scope-retry-limit', /which were already requested/],
])

/** The authorizer of a scenario; undefined if it is not about authorization. */
export async function authorizerOf(scenario, context) {
  if (!scenario.startsWith('auth/')) return undefined
  const entry = await import('../../dist/oauth.js')
  return entry.oauth(OPTIONS[scenario]?.(entry, JSON.parse(context)) ?? user())
}

/** What the client does. Two calls: the authorization server changes after the first in one of the scenarios. */
export async function useTool(client) {
  for await (const { name } of client.tools())
    for (let calls = 0; calls < 2; calls++) await client.callTool(name)
}
