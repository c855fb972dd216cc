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

/** Scenarios in which the client must not get a token. */
export const REFUSED = new Set([
  'auth/resource-mismatch',
  'auth/iss-supported-missing',
  'auth/iss-wrong-issuer',
  'auth/iss-unexpected',
  'auth/iss-normalized',
  'auth/metadata-issuer-mismatch',
  'auth/scope-retry-limit',
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
