import { isObject } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { secretsOf } from './header-secrets.js'

/** What is shown instead of a secret. */
const MARK = '[token]'
/** Minimum characters of a secret; shorter text occurs by chance. */
const MIN_LENGTH = 8
/** Characters after which the beginning of a secret is recognized, which may be all that is left of it. */
const HEAD = 12
/** Tokens are renewed, and proofs of possession are new for each request: the latest of them count. */
const MAX_SECRETS = 64
/** How often text may be encoded. */
const MAX_ENCODINGS = 3
/** Properties of errors with JSON values of a server, and with texts about them. */
const VALUES: ReadonlySet<string> = new Set(['data', 'issues'])
/** Errors have causes. */
const MAX_CAUSES = 5

/** Characters as JSON, URLs and HTML encode them. */
const ENCODED =
  /\\u([\da-f]{4})|\\x([\da-f]{2})|%([\da-f]{2})|&#x([\da-f]{1,6});|&#(\d{1,7});|\\(["'\\/])/gi

/** In lower case: media types are, too. */
interface Secret {
  readonly text: string
  /** The beginning by which it is recognized. */
  readonly head: string
}

/**
 * What authorizes requests. A server may repeat it in whatever it sends, which must not get into an error, a log or a
 * terminal.
 */
export class Secrets {
  /** Those of the configuration, which are never forgotten. */
  readonly #configured = new Map<string, Secret>()
  /** The others; the latest is the last. */
  readonly #learned = new Map<string, Secret>()

  /** With the secrets among the headers that every request has. */
  constructor(configured: Readonly<Record<string, string>> = {}) {
    for (const { text, isWhole } of secretsOf(configured)) hide(this.#configured, text, isWhole)
  }

  /** Learns the secrets among the headers of a request. */
  add(headers: Readonly<Record<string, string>>): void {
    for (const { text, isWhole } of secretsOf(headers)) hide(this.#learned, text, isWhole)
    this.#limit()
  }

  /** Learns a secret of the configuration. */
  keep(secret: string | undefined): void {
    hide(this.#configured, secret)
  }

  hide(secret: string | undefined): void {
    hide(this.#learned, secret)
    this.#limit()
  }

  #limit(): void {
    for (const text of this.#learned.keys()) {
      if (this.#learned.size <= MAX_SECRETS) return
      this.#learned.delete(text)
    }
  }

  get #isEmpty(): boolean {
    return this.#configured.size + this.#learned.size === 0
  }

  /** Text of a peer without the secrets; decoded, if they are in it encoded. */
  redact(text: string): string {
    if (this.#isEmpty) return text
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
    if (this.#isEmpty || value === undefined) return value
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
    if (this.#isEmpty) return
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
    const secrets = [...this.#configured.values(), ...this.#learned.values()]
    const places = secrets.map((secret) => ({ ...secret, at: -1 }))
    let left = ''
    let from = 0
    for (;;) {
      let [start, end] = [Infinity, 0]
      for (const place of places) {
        const { text: secret, head } = place
        if (place.at < from) place.at = indexOf(searched, head, from)
        const { at } = place
        if (at > start || at === Infinity) continue
        let { length } = head
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

function hide(known: Map<string, Secret>, secret: string | undefined, isWhole = false): void {
  if (secret === undefined || secret.length < MIN_LENGTH) return
  const text = lowerCase(secret)
  known.delete(text)
  known.set(text, { text, head: isWhole ? text : text.slice(0, HEAD) })
}

function indexOf(text: string, searched: string, from: number): number {
  const at = text.indexOf(searched, from)
  return at === -1 ? Infinity : at
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
