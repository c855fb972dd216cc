/** Names of headers, and of cookies and parameters, whose values are credentials. */
const CREDENTIALS =
  /(?:auth|authorization|bearer|credentials?|dpop|jwt|key|pass(?:phrase|wd|word)?|secret|session(?:[-_]?id)?|sid|signature|token)$/i
/** Headers that are no secrets, however long. */
const PUBLIC = /^(?:accept|content|host$|origin$|referer$|trace(?:parent|state)$|user-agent$)/
/** A value of any other header that may be a token: long, of the characters of tokens, with a mix of letters and digits. */
const LIKE_A_TOKEN = /^(?=.*(?=[a-z]*\d)[a-z\d]{8})[\w.~+/=:-]{16,}$/i
const URL_LIKE = /^(?:[a-z][a-z\d+.-]*:\/\/.*|(?:\/[a-z][\w.-]*)+\/?)$/i
/** `darkmode`, `en-gb`: a word hidden in every text would make it unreadable. */
const WORDS = /^[A-Z]?[a-z]*(?:[-_.][A-Z]?[a-z]*)*$/
/** A cookie or a parameter; `=` at the end is padding. */
const PAIR = /^([\w!#$%&'*+.^`|~-]+)=(?!=*$)"?([^"]*)"?$/

interface HeaderSecret {
  readonly text: string
  /** Whether its beginning alone is none. */
  readonly isWhole?: boolean
}

/** The secrets among headers. */
export function secretsOf(headers: Readonly<Record<string, string>>): HeaderSecret[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    secretsIn(name.toLowerCase(), value.trim()),
  )
}

function secretsIn(name: string, value: string): HeaderSecret[] {
  if (name.endsWith('cookie')) return listed(value)
  if (name.endsWith('authorization')) return authorization(value)
  if (CREDENTIALS.test(name)) return [{ text: value }, ...listed(value)]
  const isToken = !PUBLIC.test(name) && LIKE_A_TOKEN.test(value) && !URL_LIKE.test(value)
  return isToken ? [{ text: value }] : []
}

/** The credentials without their scheme. */
function authorization(value: string): HeaderSecret[] {
  const [, scheme, rest = value] = /^(\S+)\s+(\S.*)$/.exec(value) ?? []
  if (scheme?.toLowerCase() === 'basic') return basic(rest)
  const hasParameters = rest.includes('=') && /[\s,]/.test(rest)
  return hasParameters ? listed(rest) : [{ text: rest }, ...listed(rest)]
}

/** Of `Basic`, all but the name of the user. */
function basic(credentials: string): HeaderSecret[] {
  try {
    const pair = atob(credentials)
    const password = pair.slice(pair.indexOf(':') + 1)
    return [{ text: credentials }, { text: password }, { text: pair, isWhole: true }]
  } catch {
    return [{ text: credentials }]
  }
}

/** The likely secrets of a list of words, cookies or parameters. */
function listed(value: string): HeaderSecret[] {
  return value.split(/[\s,;]+/).flatMap((word) => {
    const [, name = '', text = word] = PAIR.exec(word) ?? []
    const isLikely = !WORDS.test(text) && !URL_LIKE.test(text)
    return isLikely || CREDENTIALS.test(name) ? [{ text }] : []
  })
}
