/*
 * What JSON.parse does not tell about the text of a message: whether it is nested too deeply to parse, where the first
 * syntax error is, and the exact digits of a number. No function recurses, and each is linear in the text.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Up to so many objects and arrays are always parsed; more only if the text has this many characters for each. */
export const MAX_CONTAINERS = 1_000_000
const CHARACTERS_PER_CONTAINER = 16

/**
 * Why a text must not be parsed: it is nested deeper than `maxDepth`, or has too many objects and arrays. An empty object
 * is three characters of text with its comma and about a hundred bytes of memory.
 */
export function tooComplex(text: string, maxDepth: number): 'depth' | 'containers' | undefined {
  // Each level has two brackets, so a shorter text is either shallow enough or not JSON.
  if (text.length <= 2 * maxDepth) return undefined
  const most = Math.max(MAX_CONTAINERS, text.length / CHARACTERS_PER_CONTAINER)
  let depth = 0
  let containers = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) i = stringEnd(text, i)
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++depth > maxDepth) return 'depth'
      if (++containers > most) return 'containers'
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--
  }
  return undefined
}

/** The index of the closing quote of the string that begins at `start`, or the length of the text. */
function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let slash = end - 1
    while (text.charCodeAt(slash) === BACKSLASH) slash--
    if ((end - slash) % 2 === 1) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

/**
 * The text of the value at a path of object keys, or undefined. The last of repeated keys counts, as for JSON.parse. The
 * text may be truncated: values before that point are found.
 */
export function textAt(text: string, path: readonly string[]): string | undefined {
  let found: string | undefined
  const key = path[0]
  if (key === undefined) return text.trim()
  for (const [name, start, end] of members(text)) {
    if (name === key) found = textAt(text.slice(start, end), path.slice(1))
  }
  return found
}

/** The member names of the object that the text begins with; its last value may be truncated. */
export function memberNames(text: string): Set<string> {
  const names = new Set<string>()
  for (const [name] of members(text, true)) names.add(name)
  return names
}

/** Whether the text begins like an array. */
export function isArray(text: string): boolean {
  return text.charCodeAt(skipSpace(text, 0)) === OPEN_ARRAY
}

/** The texts of the first elements of an array. For invalid JSON the result is arbitrary. */
export function elements(text: string, most = Infinity): string[] {
  const found: string[] = []
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (i < text.length && found.length < most && text.charCodeAt(i) !== CLOSE_ARRAY) {
    const end = valueEnd(text, i)
    if (end <= i) break
    found.push(text.slice(i, end))
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return found
}

/** The members of the object that the text begins with: key, and start and end of each value. */
function* members(
  text: string,
  truncated = false,
): Generator<[key: string, start: number, end: number]> {
  let i = skipSpace(text, 0)
  if (text.charCodeAt(i) !== OPEN_OBJECT) return
  i++
  while (i < text.length) {
    const keyStart = skipSpace(text, i)
    if (text.charCodeAt(keyStart) !== QUOTE) return
    const keyEnd = stringEnd(text, keyStart)
    const colon = skipSpace(text, keyEnd + 1)
    if (text.charCodeAt(colon) !== COLON) return
    const start = skipSpace(text, colon + 1)
    const end = valueEnd(text, start)
    // A value that reaches the end of the text may be truncated.
    if (end >= text.length && !truncated) return
    yield [unquote(text.slice(keyStart, keyEnd + 1)), start, end]
    const next = skipSpace(text, end)
    if (text.charCodeAt(next) !== COMMA) return
    i = next + 1
  }
}

function valueEnd(text: string, start: number): number {
  let depth = 0
  let i = start
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) i = stringEnd(text, i)
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) depth++
    else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
      if (depth === 0) break
      depth--
    } else if (code === COMMA && depth === 0) break
  }
  while (i > start && isSpace(text.charCodeAt(i - 1))) i--
  return i
}

function unquote(key: string): string {
  try {
    return String(JSON.parse(key))
  } catch {
    return key
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function skipSpace(text: string, start: number): number {
  let i = start
  while (isSpace(text.charCodeAt(i))) i++
  return i
}

const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** The position of the first syntax error. Only for a text that JSON.parse has rejected. */
export function syntaxErrorPosition(text: string): number {
  const open: number[] = []
  let i = skipSpace(text, 0)
  let expect: 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'comma' = 'value'
  while (i < text.length) {
    const code = text.charCodeAt(i)
    const closes = code === CLOSE_ARRAY || code === CLOSE_OBJECT
    if (closes && (expect === 'comma' || expect === 'first-value' || expect === 'first-key')) {
      if (open.pop() !== code) return i
      expect = 'comma'
      i++
    } else if (expect === 'colon') {
      if (code !== COLON) return i
      expect = 'value'
      i++
    } else if (expect === 'comma') {
      if (code !== COMMA || open.length === 0) return i
      expect = open.at(-1) === CLOSE_OBJECT ? 'key' : 'value'
      i++
    } else if (expect === 'key' || expect === 'first-key') {
      const end = checkedStringEnd(text, i)
      if (end < 0) return -end
      expect = 'colon'
      i = end
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      open.push(code === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY)
      expect = code === OPEN_OBJECT ? 'first-key' : 'first-value'
      i++
    } else if (code === QUOTE) {
      const end = checkedStringEnd(text, i)
      if (end < 0) return -end
      expect = 'comma'
      i = end
    } else {
      LITERAL.lastIndex = i
      const literal = LITERAL.exec(text)
      if (literal === null) return i
      expect = 'comma'
      i += literal[0].length
    }
    i = skipSpace(text, i)
  }
  return text.length
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/** The index after the string that begins at `start`; if the string is invalid, the negated position of the error. */
function checkedStringEnd(text: string, start: number): number {
  if (text.charCodeAt(start) !== QUOTE) return -start
  let i = start + 1
  while (i < text.length) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i + 1
    if (code < 0x20) return -i
    if (code === BACKSLASH) {
      ESCAPE.lastIndex = i
      const escape = ESCAPE.exec(text)
      if (escape === null) return -i
      i += escape[0].length
    } else i++
  }
  return -text.length
}
