import type { Principal } from '../jsonrpc/channel.js'
import { isObject } from '../jsonrpc/message.js'
import type { TokenVerifier } from './authorization.js'

export interface StaticToken {
  /** At least 16 characters. */
  token: string
  /** The `id` of its principal. */
  id: string
  /** The scopes that it grants. */
  scopes?: readonly string[]
}

/** Shorter tokens could be guessed. */
const MIN_LENGTH = 16

/** Static tokens, for a few known callers. */
export function tokens(
  list: readonly StaticToken[],
  options: Pick<TokenVerifier, 'scopes'> = {},
): TokenVerifier {
  if (!Array.isArray(list))
    throw new TypeError(
      'tokens: the argument must be an array such as [{ token: "…", id: "alice", scopes: ["notes:read"] }]',
    )
  const owners = new Map<string, string>()
  for (const each of list as readonly StaticToken[]) {
    if (!isObject(each))
      throw new TypeError(
        'tokens: each entry must be an object with "token", "id" and optional "scopes"',
      )
    const { token, id, scopes = [], ...others } = each
    const [other] = Object.keys(others)
    if (other !== undefined)
      throw new TypeError(
        `tokens: unknown member "${other}"; an entry has "token", "id" and "scopes"`,
      )
    if (
      typeof token !== 'string' ||
      token.length < MIN_LENGTH ||
      !/^[A-Za-z0-9._~+/=-]+$/.test(token)
    )
      throw new TypeError(
        `The token of ${JSON.stringify(id)} must be at least ${MIN_LENGTH} letters, digits and -._~+/=`,
      )
    if (typeof id !== 'string' || id === '')
      throw new TypeError('tokens: each entry needs an "id", which is a non-empty string')
    // Not a string: `includes` would match any part of it.
    if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string'))
      throw new TypeError(`The "scopes" of ${JSON.stringify(id)} must be an array of strings`)
    const owner = owners.get(token)
    if (owner !== undefined)
      throw new TypeError(
        `tokens: ${JSON.stringify(owner)} and ${JSON.stringify(id)} have the same token; give each entry its own`,
      )
    owners.set(token, id)
  }
  const known = list.map(({ token, id, scopes = [] }) => ({
    token,
    principal: { id, scopes } satisfies Principal,
  }))
  return {
    ...options,
    verify(token) {
      let found: Principal | undefined
      // Compares all, in constant time: the duration must not reveal how close a guess was.
      for (const each of known) if (equalsInConstantTime(each.token, token)) found = each.principal
      return found
    },
  }
}

function equalsInConstantTime(known: string, given: string): boolean {
  let difference = known.length ^ given.length
  for (let i = 0; i < known.length; i++)
    difference |= known.charCodeAt(i) ^ given.charCodeAt(i % Math.max(given.length, 1))
  return difference === 0
}
