/** What a `WWW-Authenticate` header asks of us. */
export interface ParsedChallenge {
  /** The scheme of the challenge, in lower case: `bearer` or `dpop`. */
  readonly scheme: string | undefined
  readonly error: string | undefined
  readonly scopes: readonly string[] | undefined
  /** The URL of the protected resource metadata. */
  readonly resourceMetadata: string | undefined
}

/** Maximum characters of a header that are read. */
const MAX_HEADER = 16_384
/** Maximum number of scopes. */
const MAX_SCOPES = 100

const TOKEN = /[!#$%&'*+\-.^_`|~\dA-Za-z]+/y
const TOKEN_68 = /[\w\-.~+/]+=*(?=\s*(?:,|$))/y
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy
const SPACE = /\s*/y
const SEPARATORS = /[\s,]*/y

/** Reads the Bearer or DPoP challenge of a header (RFC 9110, section 11.6.1), which may have several challenges. */
export function parseChallenge(header: string | undefined): ParsedChallenge {
  const challenges = challengesOf((header ?? '').slice(0, MAX_HEADER))
  const { scheme, params } = challenges.find(
    (each) => each.params.has('resource_metadata') && isOurs(each),
  ) ??
    challenges.find(isOurs) ?? { scheme: undefined, params: new Map<string, string>() }
  const scopes = params.get('scope')
  return {
    scheme,
    error: params.get('error'),
    scopes: scopes === undefined ? undefined : scopesOf(scopes),
    resourceMetadata: params.get('resource_metadata'),
  }
}

interface Challenge {
  readonly scheme: string
  readonly params: ReadonlyMap<string, string>
}

function isOurs({ scheme }: Challenge): boolean {
  return scheme === 'bearer' || scheme === 'dpop'
}

/** Scopes of a space-separated list, each once. */
export function scopesOf(text: string): string[] {
  const scopes = text.split(' ').filter((scope) => /^[!#-[\]-~]+$/.test(scope))
  return [...new Set(scopes)].slice(0, MAX_SCOPES)
}

function challengesOf(header: string): Challenge[] {
  const found: { scheme: string; params: Map<string, string> }[] = []
  let at = 0
  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at
    const matched = pattern.exec(header) ?? undefined
    if (matched !== undefined) at = pattern.lastIndex
    return matched
  }
  for (;;) {
    match(SEPARATORS)
    const word = match(TOKEN)?.[0].toLowerCase()
    // The end, or what is not a challenge: the rest is ignored.
    if (word === undefined) return found
    match(SPACE)
    if (header[at] !== '=') {
      found.push({ scheme: word, params: new Map() })
      // Credentials instead of parameters, as in `Negotiate abc==`.
      match(TOKEN_68)
      continue
    }
    at++
    match(SPACE)
    const value = match(QUOTED)?.[1]?.replaceAll(/\\(.)/gs, '$1') ?? match(TOKEN)?.[0]
    if (value === undefined) return found
    const params = found.at(-1)?.params
    // The first of two equal names counts.
    if (params !== undefined && !params.has(word)) params.set(word, value)
  }
}
