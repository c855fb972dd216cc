import { type YAMLMap, isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml'
import { truncateJson } from '../../jsonrpc/truncate.js'

/* The front matter of a SKILL.md: YAML between two lines "---", read as JSON. */

/** Maximum characters of front matter. */
const MAX_LENGTH = 32_768
const MAX_DEPTH = 32

/** Plain texts that YAML 1.1 reads as something else: booleans, dates, numbers in base 60 or with underscores. */
const AMBIGUOUS =
  /^(?:y|yes|n|no|on|off|=|<<|\d{4}-\d\d?-\d\d?(?:[Tt\s].*)?|[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.\d*)?|[-+]?(?:0b[01_]+|0x[\da-f_]+|(?=[^_]*_)\d[\d_]*(?:\.[\d_]*)?))$/i

/** Front matter that cannot be read; the message has the line. */
export class FrontMatterError extends Error {
  override readonly name = 'FrontMatterError'
}

interface Rules {
  /** Refuses what other YAML parsers read differently: for authors, who can put it in quotes. */
  readonly strict: boolean
}

export interface SkillMarkdown {
  readonly frontmatter: Readonly<Record<string, unknown>>
  /** What follows the front matter. */
  readonly body: string
}

/** Splits a SKILL.md and reads its front matter. Throws a `FrontMatterError`. */
export function parseSkillMarkdown(markdown: string, rules: Rules): SkillMarkdown {
  const text = markdown.startsWith('\uFEFF') ? markdown.slice(1) : markdown
  const opening = /^---\r?\n/.exec(text)
  if (opening === null)
    throw new FrontMatterError('line 1: the file must begin with a line "---" and front matter')
  const start = opening[0].length
  const closing = /^---[\t ]*\r?$/m.exec(text.slice(start, start + MAX_LENGTH + 8))
  if (closing === null)
    throw new FrontMatterError(
      `the front matter must end with a line "---", within ${MAX_LENGTH} characters`,
    )
  const yaml = text.slice(start, start + closing.index)
  const body = text.slice(start + closing.index + closing[0].length).replace(/^\n/, '')
  return { frontmatter: new Reader(yaml, rules).read(), body }
}

class Reader {
  readonly #yaml: string
  readonly #strict: boolean

  constructor(yaml: string, { strict }: Rules) {
    this.#yaml = yaml
    this.#strict = strict
  }

  read(): Readonly<Record<string, unknown>> {
    const document = this.#parse()
    const [problem] = [...document.errors, ...document.warnings]
    if (problem !== undefined) throw this.#error(problem.message, problem.pos[0])
    const { contents } = document
    if (!isMap(contents)) throw this.#error('the front matter must be a map of fields', 0)
    return this.#map(contents, 0)
  }

  #parse() {
    try {
      return parseDocument(this.#yaml, {
        version: '1.2',
        schema: 'core',
        merge: false,
        // Duplicates are found below, in linear time.
        uniqueKeys: false,
        prettyErrors: false,
        // If it were silent, a second document would be ignored.
        logLevel: 'error',
      })
    } catch (error) {
      // The parser is recursive: this is how it fails if values are nested too deeply.
      if (error instanceof RangeError) throw this.#error('it is nested too deeply', 0)
      throw error
    }
  }

  #value(node: unknown, depth: number): unknown {
    if (node === null || node === undefined) return null
    if (isAlias(node)) throw this.#at(node, 'aliases are not allowed; repeat the value')
    if (isMap(node)) return this.#map(node, depth + 1)
    if (isSeq(node)) {
      this.#checkNode(node, depth + 1)
      return node.items.map((item) => this.#value(item, depth + 1))
    }
    return this.#scalar(node)
  }

  #map(map: YAMLMap, depth: number): Record<string, unknown> {
    this.#checkNode(map, depth)
    const fields: Record<string, unknown> = {}
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? this.#scalar(key) : undefined
      if (typeof name !== 'string')
        throw this.#at(key, 'the name of a field must be a text; put it in quotes')
      if (name === '__proto__') throw this.#at(key, 'a field cannot have the name "__proto__"')
      if (Object.hasOwn(fields, name))
        throw this.#at(key, `the field ${truncateJson(name)} is defined twice; remove one`)
      fields[name] = this.#value(value, depth)
    }
    return fields
  }

  #scalar(node: unknown): string | number | boolean | null {
    if (!isScalar(node)) throw this.#at(node, 'this is not a value of JSON')
    this.#checkNode(node, 0)
    const { value, type, source = '' } = node
    const plain = type === 'PLAIN'
    if (value === null || typeof value === 'boolean') return value
    if (typeof value === 'number') {
      const exact =
        Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
      if (!exact)
        throw this.#at(node, `${truncateJson(source)} is not a number of JSON; put it in quotes`)
      if (this.#strict && String(value) !== source)
        throw this.#at(
          node,
          `${truncateJson(source)} would be read as ${value}; put it in quotes if it is a text`,
        )
      // JSON.stringify writes -0 as 0.
      return value === 0 ? 0 : value
    }
    if (typeof value !== 'string') throw this.#at(node, 'this is not a value of JSON')
    if (this.#strict && plain && AMBIGUOUS.test(value))
      throw this.#at(
        node,
        `${truncateJson(value)} is read differently by different programs; put it in quotes`,
      )
    if (/\p{Surrogate}/u.test(value)) throw this.#at(node, 'a text must be valid Unicode')
    return value
  }

  #checkNode(node: { anchor?: string; tag?: string }, depth: number): void {
    if (depth > MAX_DEPTH) throw this.#at(node, `it is nested more than ${MAX_DEPTH} levels deep`)
    if (node.anchor !== undefined) throw this.#at(node, 'anchors are not allowed; remove it')
    if (node.tag !== undefined) throw this.#at(node, 'tags are not allowed; remove it')
  }

  #at(node: unknown, problem: string): FrontMatterError {
    const { range } = Object(node) as { range?: readonly [number, ...number[]] | null } // nodes have one
    return this.#error(problem, range?.[0] ?? 0)
  }

  #error(problem: string, offset: number): FrontMatterError {
    // The first line of the file is "---".
    const line = 2 + (this.#yaml.slice(0, offset).match(/\n/g)?.length ?? 0)
    return new FrontMatterError(`line ${line}: ${problem}`)
  }
}
