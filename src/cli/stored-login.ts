import { existsSync } from 'node:fs'
import type { Authorizer } from '../client.js'
import type { OAuthOptions } from '../oauth.js'
import { CommandError } from './options.js'
import { proxyOf } from '../transports/http/client/node-proxy.js'
import { TokenFile } from './token-file.js'
import { tokenDirectory } from './token-path.js'

export const EXPOSED =
  'The tokens would go to the proxy of HTTP_PROXY unencrypted; add the host to NO_PROXY'

/** Whether a token for the URL would go to a proxy unencrypted. */
export function isExposed(url: URL, env: NodeJS.ProcessEnv = process.env): boolean {
  return url.protocol === 'http:' && proxyOf(url, env) !== undefined
}

/** Uses the tokens of `ccmcp login`, if there are any for the URL. Never asks the user. */
export function storedLogin(server: URL): Authorizer {
  let loading: Promise<Authorizer | undefined> | undefined
  const load = () => (loading ??= authorizerOf(server))
  return {
    async headers(request) {
      return (await (await load())?.headers(request)) ?? {}
    },
    async challenged(challenge, signal) {
      const authorizer = await load()
      if (authorizer === undefined) return false
      const { AuthorizationRequiredError } = await import('../oauth.js')
      try {
        return await authorizer.challenged(challenge, signal)
      } catch (error) {
        // Then the refusal of the server is shown, with the advice to log in.
        if (error instanceof AuthorizationRequiredError) return false
        throw error
      }
    },
  }
}

/** OAuth is only loaded if there are tokens. */
async function authorizerOf(server: URL): Promise<Authorizer | undefined> {
  const name = serverName(server)
  if (!existsSync(tokenDirectory())) return undefined
  // A request that waits for the login of another process has a timeout of its own.
  const store = new TokenFile(undefined, { ref: false })
  if ((await store.get(serverKey(name))) === undefined) return undefined
  if (isExposed(server)) throw new CommandError(2, EXPOSED)
  const { oauth } = await import('../oauth.js')
  return oauth({ store, ...(await loginOptions(store, name)) })
}

/** A server as `oauth` names it. */
export function serverName(server: URL): string {
  const url = new URL(server)
  url.hash = ''
  return url.href
}

/** The key of `oauth` for the tokens of a server. */
export const serverKey = (server: string): string => `server ${server}`
const optionsKey = (server: string) => `options ${server}`

const REMEMBERED = ['issuerTrailingSlash', 'assumePkce', 'privateAddresses'] as const
export type LoginOptions = Pick<OAuthOptions, (typeof REMEMBERED)[number]>

/** Options of a login that are also needed to refresh and to revoke its tokens. */
export async function loginOptions(store: TokenFile, server: string): Promise<LoginOptions> {
  const words = (await store.get(optionsKey(server)))?.split(' ') ?? []
  return Object.fromEntries(REMEMBERED.map((name) => [name, words.includes(name)]))
}

export async function saveLoginOptions(
  store: TokenFile,
  server: string,
  options: LoginOptions,
): Promise<void> {
  const words = REMEMBERED.filter((name) => options[name])
  if (words.length > 0) await store.set(optionsKey(server), words.join(' '))
  else await store.delete(optionsKey(server))
}
