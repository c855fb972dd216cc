import type { ServerResponse } from 'node:http'
import { type EditedHeaders, edited, pairsOf } from './http-heads.js'

/* Interim responses, as far as Node can send them: 100 and 102 without headers, 103 with links. */

/**
 * A link that Node accepts. Node compares it with an expression that takes exponential time for some others, so that they
 * must not reach it.
 */
const LINK = /^<[^<>]*>(?:\s*;\s*[^;"\s=]+(?:=(?:"[^;"\s]*"|[^;"\s]*))?)*$/

/** Forwards an interim response; undefined if Node cannot send it. */
export function forwardInterim(
  response: ServerResponse,
  status: number,
  headers: readonly string[],
): EditedHeaders | undefined {
  if (status === 103) return forwardHints(response, headers)
  if (status === 100) response.writeContinue()
  else if (status === 102) response.writeProcessing()
  else return undefined
  return edited(headers, () => undefined)
}

/** Node sends each name once: the values of a header that is repeated become a list. */
function forwardHints(
  response: ServerResponse,
  headers: readonly string[],
): EditedHeaders | undefined {
  const values = new Map<string, string[]>()
  for (const [name, value] of pairsOf(headers)) {
    const key = name.toLowerCase()
    const others = values.get(key)
    if (others === undefined) values.set(key, [value])
    else others.push(value)
  }
  const links = (values.get('link') ?? []).flatMap(linksOf)
  if (links.length === 0 || !links.every((link) => LINK.test(link))) return undefined
  const result = edited(headers, (name) => {
    const all = values.get(name)
    values.delete(name)
    if (name === 'link') return all && links.join(', ')
    // The only header whose values cannot be a list.
    return name === 'set-cookie' ? all?.[0] : all?.join(', ')
  })
  const pairs = pairsOf(result.list).map(([name, value]): [string, string | string[]] =>
    name.toLowerCase() === 'link' ? ['link', links] : [name, value],
  )
  response.writeEarlyHints(Object.fromEntries(pairs))
  return result
}

/** The links of a value, which may be a list. Linear: the value is the server's. */
function linksOf(value: string): string[] {
  const links: string[] = []
  let closing = ''
  let start = 0
  for (let i = 0; i <= value.length; i++) {
    const character = value[i]
    if (closing !== '' && i < value.length) {
      if (character === closing) closing = ''
    } else if (character === '<') closing = '>'
    else if (character === '"') closing = '"'
    else if (character === ',' || i === value.length) {
      links.push(value.slice(start, i).trim())
      start = i + 1
    }
  }
  return links.filter((link) => link !== '')
}
