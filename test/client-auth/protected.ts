import {
  type IncomingMessage,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import OidcProvider from 'oidc-provider'
import { createServer, tool } from '../../src/index.js'
import { nodeHandler, oauth } from '../../src/http.js'

/* A server of ours behind a real authorization server (oidc-provider), whose user agrees to everything. */

export interface Protected {
  url: string
  issuer: string
  /** Number of logins. */
  logins(): number
  /** The requests to the authorization server: method and path. */
  requests: string[]
  close(): Promise<void>
}

const SCOPES = 'notes:read notes:write'

async function listening(): Promise<{
  port: number
  server: ReturnType<typeof createHttpServer>
}> {
  const server = createHttpServer()
  // On a busy machine, the default of 5 s could end while the client sends the next request.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, port: (server.address() as AddressInfo).port } // listens on a port
}

export async function startProtected({
  lifetime = 3600,
  origins = [],
}: { lifetime?: number; origins?: readonly string[] } = {}): Promise<Protected> {
  const [authorization, resource] = [await listening(), await listening()]
  const issuer = `http://localhost:${authorization.port}`
  const url = `http://localhost:${resource.port}/mcp`
  const requests: string[] = []
  let logins = 0
  const provider = new OidcProvider(issuer, {
    // oidc-provider does not allow pages to register a client.
    clients: origins.map((origin) => ({
      client_id: 'page',
      redirect_uris: [`${origin}/oauth`],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    })),
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of a test'] },
    clientBasedCORS: () => true,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: SCOPES,
          audience: url,
          accessTokenTTL: lifetime,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  const agree = async (request: IncomingMessage, response: ServerResponse) => {
    const { prompt, params } = await provider.interactionDetails(request, response)
    if (prompt.name === 'login') {
      logins++
      await provider.interactionFinished(request, response, { login: { accountId: 'alice' } })
      return
    }
    const grant = new provider.Grant({ accountId: 'alice', clientId: params['client_id'] ?? '' })
    grant.addOIDCScope(params['scope'] ?? '')
    grant.addResourceScope(url, params['scope'] ?? '')
    const consent = { grantId: await grant.save() }
    await provider.interactionFinished(request, response, { consent })
  }
  const callback = provider.callback()
  authorization.server.on('request', (request, response) => {
    const path = new URL(request.url ?? '/', issuer).pathname
    requests.push(`${request.method} ${path}`)
    if (path.startsWith('/interaction/')) void agree(request, response)
    else callback(request, response)
  })
  const server = createServer({
    name: 'notes',
    version: '1',
    tools: [
      tool({ name: 'whoami', run: (_, call) => `${call.client.principal?.id}` }),
      tool({ name: 'write', scopes: ['notes:write'], run: () => 'written' }),
    ],
  })
  const handler = nodeHandler(server, {
    auth: oauth({ resource: url, issuer, scopes: ['notes:read'] }),
    origins,
  })
  resource.server.on('request', handler)
  const servers = [authorization.server, resource.server]
  return {
    url,
    issuer,
    requests,
    logins: () => logins,
    async close() {
      await Promise.all(
        servers.map(
          (each) =>
            new Promise<void>((resolve) => {
              each.close(() => resolve())
              each.closeAllConnections()
            }),
        ),
      )
    },
  }
}

/** A browser with cookies: follows redirects until one leaves the authorization server. */
export async function browse(url: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>()
  for (let at = url, hops = 0; hops < 20; hops++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(at, { redirect: 'manual', headers: { cookie } })
    await response.text()
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`HTTP ${response.status} at ${at}`)
    at = new URL(location, at).href
    if (new URL(at).origin !== new URL(issuer).origin) return at
  }
  throw new Error('too many redirects')
}
