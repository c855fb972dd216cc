import type { ClaimedTask } from '../task-store.js'

/* Replies of Redis. RESP2 has arrays where RESP3 may have maps, and clients may map either. */

export function asText(reply: unknown): string | undefined {
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number' || typeof reply === 'bigint') return String(reply)
  return reply instanceof Uint8Array ? new TextDecoder().decode(reply) : undefined
}

/** A list of texts; undefined for what is null. */
export function asTexts(reply: unknown): (string | undefined)[] {
  return asList(reply).map(asText)
}

export function asList(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** Names and values, from an array of both in turn, an array of pairs, a Map or an object. */
export function asPairs(reply: unknown): Map<string, unknown> {
  const pairs = new Map<string, unknown>()
  const add = (name: unknown, value: unknown) => pairs.set(asText(name) ?? '', value)
  if (reply instanceof Map) for (const [name, value] of reply) add(name, value)
  else if (!Array.isArray(reply))
    for (const [name, value] of Object.entries(reply ?? {})) add(name, value)
  else if (Array.isArray(reply[0]))
    for (const [name, value] of reply as unknown[][]) add(name, value)
  else for (let i = 0; i + 1 < reply.length; i += 2) add(reply[i], reply[i + 1])
  return pairs
}

/** A task in the reply of `CLAIM`. */
export function claimedOf(reply: unknown): ClaimedTask {
  const [name = '', owner = '', expires, version, state = ''] = asTexts(reply)
  const entries = asTexts(asList(reply)[5]).map((entry) => entry ?? '')
  return {
    name,
    owner,
    expires: Number(expires),
    timeLeft: Number(asList(reply)[6]),
    runnable: true,
    version: Number(version),
    state,
    entries,
  }
}
