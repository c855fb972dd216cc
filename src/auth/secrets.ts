import { isObject } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'

/** What is shown instead of a secret. */
const MARK = '[token]'
/** Minimum characters of a secret; shorter text occurs by chance. */
const MIN_LENGTH = 8
/** Characters after which the beginning of a secret is recognized, which may be all that is left of it. */
const HEAD = 12
/** Tokens are renewed, and proofs of possession are new for each request: the latest count. */
const MAX_SECRETS = 64
/** How often text may be encoded. */
const MAX_ENCODINGS = 3
/** Properties of errors with JSON values of a server, and with texts about them. */
const VALUES: ReadonlySet<string> = new Set(['data', 'issues'])
/** Errors have causes. */
const MAX_CAUSES = 5

const CREDENTIALS = /auth|bearer|cookie|credential|dpop|jwt|key|pass|secret|session|signature|token/
/** A value of any other header that is long and has no blank may be a token. */
const LIKE_A_TOKEN = /^\S{16,}$/
/** Characters as JSON, URLs and HTML encode them. */
const ENCODED =
  /\\u([\da-f]{4})|\\x([\da-f]{2})|%([\da-f]{2})|&#x([\da-f]{1,6});|&#(\d{1,7});|\\(["'\\/])/gi

/**
 * What authorizes requests. A server may repeat it in whatever it sends, which must not get into an error, a log or a
 * terminal.
 */
export class Secrets {
  /** In lower case: media types are, too. The latest is the last. */
  readonly #values = new Set<string>()

  /** Learns the secrets among the headers of a request. */
  add(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      if (CREDENTIALS.test(name.toLowerCase())) for (const part of partsOf(value)) this.hide(part)
      else if (LIKE_A_TOKEN.test(value)) this.hide(value)
    }
  }

  hide(secret: string | undefined): void {
    if (secret === undefined || secret.length < MIN_LENGTH) return
    const value = lowerCase(secret)
    this.#values.delete(value)
    this.#values.add(value)
    if (this.#values.size <= MAX_SECRETS) return
    const [oldest = ''] = this.#values
    this.#values.delete(oldest)
  }

  /** Text of a peer without the secrets; decoded, if they are in it encoded. */
  redact(text: string): string {
    if (this.#values.size === 0) return text
    let shown = this.#replaced(text)
    for (let plain = shown, count = 0; count < MAX_ENCODINGS; count++) {
      const next = decoded(plain)
      if (next === plain) break
      plain = this.#replaced(next)
      if (plain !== next) shown = plain
    }
    return shown
  }

  /** A JSON value without the secrets; the same value if it has none. */
  redactValue(value: unknown): unknown {
    if (this.#values.size === 0 || value === undefined) return value
    if (typeof value === 'string') return this.redact(value)
    try {
      const text = JSON.stringify(value)
      if (this.redact(text) === text) return value
      return JSON.parse(text, (_key, each: unknown) => {
        if (typeof each === 'string') return this.redact(each)
        if (!isObject(each)) return each
        return Object.fromEntries(
          Object.entries(each).map(([name, member]) => [this.redact(name), member]),
        )
      })
    } catch {
      return MARK
    }
  }

  /** The same for text that is probably JSON. */
  redactJson(text: string): string {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return this.redact(text)
    }
    const shown = this.redactValue(value)
    return shown === value ? text : JSON.stringify(shown)
  }

  /** Removes the secrets from an error and its causes, in place: whoever has them compares their identity. */
  redactError(error: unknown): void {
    if (this.#values.size === 0) return
    for (let at = error, count = 0; at instanceof Error && count < MAX_CAUSES; count++) {
      const found = at as Error & Record<string, unknown> // its properties, by their names
      for (const name of Object.getOwnPropertyNames(found)) {
        try {
          const before = found[name]
          if (typeof before !== 'string' && !VALUES.has(name)) continue
          const after = this.redactValue(before)
          if (after !== before) found[name] = after
        } catch {
          // An accessor or a frozen error of other code.
        }
      }
      at = found.cause
    }
  }

  redactEntry(entry: LogEntry): LogEntry {
    this.redactError(entry.error)
    return { ...entry, message: this.redact(entry.message) }
  }

  #replaced(text: string): string {
    const searched = lowerCase(text)
    // Where each occurs next: a search from every place would take quadratic time.
    const places = Array.from(this.#values, (secret) => ({ secret, at: -1 }))
    let left = ''
    let from = 0
    for (;;) {
      let [start, end] = [Infinity, 0]
      for (const place of places) {
        const { secret } = place
        if (place.at < from) place.at = indexOf(searched, secret.slice(0, HEAD), from)
        const { at } = place
        if (at > start || at === Infinity) continue
        let length = Math.min(HEAD, secret.length)
        while (length < secret.length && searched[at + length] === secret[length]) length++
        end = at < start ? at + length : Math.max(end, at + length)
        start = at
      }
      if (start === Infinity) return from === 0 ? text : left + text.slice(from)
      left += `${text.slice(from, start)}${MARK}`
      from = end
    }
  }
}

function indexOf(text: string, searched: string, from: number): number {
  const at = text.indexOf(searched, from)
  return at === -1 ? Infinity : at
}

/** The words of a header and the values of its parameters; with Basic, the password. */
function partsOf(value: string): string[] {
  const words = value.split(/[\s,;]+/)
  const values = words.map((word) => word.slice(word.indexOf('=') + 1).replaceAll('"', ''))
  if (!/^basic /i.test(value)) return [...words, ...values]
  const pair = basicOf(words[1] ?? '')
  return [...words, pair, pair.slice(pair.indexOf(':') + 1)]
}

function basicOf(credentials: string): string {
  try {
    return atob(credentials)
  } catch {
    return ''
  }
}

/** Of the same length: only ASCII. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

function decoded(text: string): string {
  return text.replaceAll(
    ENCODED,
    (
      found,
      unicode?: string,
      byte?: string,
      percent?: string,
      hex?: string,
      decimal?: string,
      escaped?: string,
    ) => {
      if (escaped !== undefined) return escaped
      const digits = unicode ?? byte ?? percent ?? hex
      const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : found
    },
  )
}
