/*
 * Strings with wildcards, written `~"…"`: `*` matches any text; `$name` matches any text and stores it, or matches
 * the stored text. `\*`, `\$` and `\\` are the characters themselves.
 */

type Part =
  | { kind: 'text'; text: string }
  | { kind: 'any'; stars: string }
  | { kind: 'variable'; name: string }

const TOKENS = /\\([\\*$])|(\*+)|\$([A-Za-z_]\w*)|([^\\*$]+|[\\$])/g

function partsOf(pattern: string): Part[] {
  const parts: Part[] = []
  for (const [, escaped, star, name, plain] of pattern.matchAll(TOKENS)) {
    const last = parts.at(-1)
    if (star !== undefined) parts.push({ kind: 'any', stars: star })
    else if (name !== undefined) parts.push({ kind: 'variable', name })
    else if (last?.kind === 'text') last.text += escaped ?? plain ?? ''
    else parts.push({ kind: 'text', text: escaped ?? plain ?? '' })
  }
  return parts
}

/** The names of the variables in a pattern. */
export function variablesOf(pattern: string): string[] {
  return partsOf(pattern).flatMap((part) => (part.kind === 'variable' ? [part.name] : []))
}

/** Looks up the value of a variable. */
type Values = (name: string) => string | undefined

/**
 * The variables of a text that matches, otherwise undefined. Wildcards match as little as possible, so that the time is
 * linear.
 */
export function matchText(
  pattern: string,
  text: string,
  known: Values,
): Map<string, string> | undefined {
  const found = new Map<string, string>()
  let at = 0
  /** The wildcard whose end has not been found yet. */
  let open: Part | undefined
  const close = (end: number) => {
    if (open?.kind === 'variable') found.set(open.name, text.slice(at, end))
  }
  const parts = partsOf(pattern)
  for (const [index, part] of parts.entries()) {
    const literal =
      part.kind === 'text'
        ? part.text
        : part.kind === 'variable'
          ? (found.get(part.name) ?? known(part.name))
          : undefined
    if (literal === undefined || part.kind === 'any') {
      if (open !== undefined)
        throw new SyntaxError(
          `In ~${JSON.stringify(pattern)}, there must be text between two wildcards`,
        )
      open = part
      continue
    }
    const earliest = at + (open?.kind === 'variable' ? 1 : 0)
    const last = index === parts.length - 1
    const start =
      open === undefined
        ? at
        : last
          ? text.length - literal.length
          : text.indexOf(literal, earliest)
    if (start < earliest || !text.startsWith(literal, start)) return undefined
    close(start)
    open = undefined
    at = start + literal.length
  }
  if (open === undefined ? at !== text.length : open.kind === 'variable' && at === text.length)
    return undefined
  close(text.length)
  return found
}

/** Replaces the variables of a pattern by their values. A `*` stays a `*`. */
export function fillText(pattern: string, known: Values): string {
  return partsOf(pattern)
    .map((part) =>
      part.kind === 'text'
        ? part.text
        : part.kind === 'any'
          ? part.stars
          : (known(part.name) ?? ''),
    )
    .join('')
}
