import type { Principal } from '../jsonrpc/channel.js'
import { isObject } from '../jsonrpc/message.js'
import type { Authorization } from './authorization.js'

export interface KnownToken {
  /** At least 16 characters. */
  token: string
  /** Who uses it. */
  id: string
  /** What it grants. */
  scopes?: readonly string[]
}

/** The shortest token that is not guessed. */
const SHORTEST = 16

/** A list of tokens that were given out by hand: for a few callers that are known. */
export function tokens(
  list: readonly KnownToken[],
  options: Pick<Authorization, 'scopes'> = {},
): Authorization {
  if (!Array.isArray(list))
    throw new TypeError(
      'tokens: give it an array, such as [{ token: "…", id: "alice", scopes: ["notes:read"] }]',
    )
  const owners = new Map<string, string>()
  for (const each of list as readonly KnownToken[]) {
    if (!isObject(each))
      throw new TypeError(
        'tokens: each entry must be an object with a "token", an "id" and perhaps "scopes"',
      )
    const { token, id, scopes = [], ...others } = each
    const [other] = Object.keys(others)
    if (other !== undefined)
      throw new TypeError(`tokens: there is no "${other}"; an entry has "token", "id" and "scopes"`)
    if (
      typeof token !== 'string' ||
      token.length < SHORTEST ||
      !/^[A-Za-z0-9._~+/=-]+$/.test(token)
    )
      throw new TypeError(
        `The token of ${JSON.stringify(id)} must be at least ${SHORTEST} letters, digits and -._~+/=`,
      )
    if (typeof id !== 'string' || id === '')
      throw new TypeError('Every token needs an "id": who uses it')
    // A text would have every part of itself for a scope.
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
      // All of them, whatever is found: how long it takes must not tell how near a guess was.
      for (const each of known) if (isSame(each.token, token)) found = each.principal
      return found
    },
  }
}

function isSame(known: string, given: string): boolean {
  let difference = known.length ^ given.length
  for (let i = 0; i < known.length; i++)
    difference |= known.charCodeAt(i) ^ given.charCodeAt(i % Math.max(given.length, 1))
  return difference === 0
}
