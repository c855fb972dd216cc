import {
  type Document,
  type Node as YamlNode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
} from 'yaml'
import { type Format, MAX_DEPTH, type Member, type Node, syntaxError } from './document.js'

export const yaml: Format = {
  parse(text) {
    const document = parseDocument(text, { prettyErrors: false })
    const [error] = document.errors
    if (error !== undefined) throw syntaxError(text, error.pos[0], error.message)
    const { contents } = document
    if (contents === null) throw new SyntaxError('it is empty')
    const root = converted(contents, document)
    if (root.kind !== 'table') throw syntaxError(text, root.start, 'expected a mapping')
    return root
  },
  quote: (value) => JSON.stringify(value),
  // A plain text may be something else in a list on one line, and a text of several lines has an indentation.
  moved: (raw, value) => (/[,[\]{}\n]/.test(raw) ? JSON.stringify(value) : raw),
  addList(text, table, { keyStart, value: { end } }, name, list) {
    const lineStart = text.lastIndexOf('\n', keyStart - 1) + 1
    const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
    const before = table.inline ? ', ' : lineBreak + text.slice(lineStart, keyStart)
    return { start: end, end, text: `${before}${name}: ${list}` }
  },
}

/** The library reports what is wrong with an alias when it is resolved. */
function converted(contents: YamlNode, document: Document): Node {
  try {
    return nodeOf(contents, document, 0)
  } catch (error) {
    throw new SyntaxError(error instanceof Error ? error.message : String(error))
  }
}

function nodeOf(node: YamlNode | null | undefined, document: Document, depth: number): Node {
  if (depth > MAX_DEPTH) throw new SyntaxError('it is nested too deeply')
  const [start, end] = node?.range ?? [0, 0]
  if (isMap(node)) {
    const members = new Map<string, Member>()
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : String(key)
      const keyStart = isScalar(key) ? (key.range?.[0] ?? 0) : 0
      // The types of the library do not say which nodes a parsed document has.
      const child = nodeOf(value as YamlNode | null, document, depth + 1)
      members.set(name, { keyStart, lastKeyStart: keyStart, value: child })
    }
    return { kind: 'table', members, inline: node.flow === true, start, end }
  }
  if (isSeq(node)) {
    const items = node.items.map((item) => nodeOf(item as YamlNode | null, document, depth + 1)) // see above
    return { kind: 'list', items, block: node.flow !== true, start, end }
  }
  if (isAlias(node))
    return { kind: 'scalar', value: { alias: node.toJS(document) as unknown }, start, end }
  return { kind: 'scalar', value: isScalar(node) ? node.value : null, start, end }
}
