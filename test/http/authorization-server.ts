import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import OidcProvider from 'oidc-provider'

/** A real authorization server, for the length of a test: clients come with their credentials and get tokens. */
export interface AuthorizationServer {
  issuer: string
  /** A token of a client, for a resource, with scopes. */
  token(client: string, options: { resource: string; scope?: string }): Promise<string>
  close(): Promise<void>
}

export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`
  const client = (id: string) => ({
    client_id: id,
    client_secret: `${id}-secret`,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  })
  const provider = new OidcProvider(issuer, {
    clients: [client('alice'), client('bob')],
    scopes: ['notes:read', 'notes:write', 'admin'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'notes:read notes:write admin',
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    ttl: { ClientCredentials: 60 },
  })
  server.on('request', provider.callback())
  return {
    issuer,
    async token(id, { resource, scope = '' }) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${id}:${id}-secret`)}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          resource,
          ...(scope === '' ? {} : { scope }),
        }).toString(),
      })
      const { access_token: token } = (await response.json()) as { access_token?: string }
      if (token === undefined) throw new Error(`The authorization server said ${response.status}`)
      return token
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
