import { existsSync } from 'node:fs'
import type { Authorizer } from '../client.js'
import { CommandError } from './options.js'
import { isExposed, proxyFetch } from './proxy-fetch.js'
import { TokenFile, tokenDirectory } from './token-file.js'

export const EXPOSED =
  'The tokens would go to the proxy of HTTP_PROXY unencrypted; add the host to NO_PROXY'

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
  const url = new URL(server)
  url.hash = ''
  if (!existsSync(tokenDirectory())) return undefined
  const store = new TokenFile()
  if ((await store.get(`server ${url.href}`)) === undefined) return undefined
  if (isExposed(url)) throw new CommandError(2, EXPOSED)
  const { oauth } = await import('../oauth.js')
  return oauth({ store, fetch: proxyFetch() })
}
