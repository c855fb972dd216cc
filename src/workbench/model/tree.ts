import { type JsonNode, parseJson } from '../../capture/json.js'

/** What a value is; the order is that of the numbers in `Tree.kind`. */
export const VALUE_KINDS = ['object', 'array', 'string', 'number', 'literal'] as const

/**
 * The values of a JSON text, parents before children. Parallel arrays, so that a message of half a million values is
 * passed on without a copy. Positions are those of bytes within the frame.
 */
export interface Tree {
  depth: Uint16Array
  kind: Uint8Array
  /** The bytes of the value. */
  start: Uint32Array
  end: Uint32Array
  /** The bytes of its name; equal if it has none. */
  keyStart: Uint32Array
  keyEnd: Uint32Array
  /** The index after its last descendant. */
  next: Uint32Array
  /** Its position among its siblings, and how many children it has. */
  position: Uint32Array
  children: Uint32Array
}

/** The tree of a text that begins `offset` bytes after the start of its frame; undefined if it is not JSON. */
export function treeOf(text: string, offset: number): Tree | undefined {
  const { node } = parseJson(text)
  if (node === undefined) return undefined
  const positions = new BytePositions(text, offset)
  const count = countOf(node)
  const tree: Tree = {
    depth: new Uint16Array(count),
    kind: new Uint8Array(count),
    start: new Uint32Array(count),
    end: new Uint32Array(count),
    keyStart: new Uint32Array(count),
    keyEnd: new Uint32Array(count),
    next: new Uint32Array(count),
    position: new Uint32Array(count),
    children: new Uint32Array(count),
  }
  let at = 0
  const add = (value: JsonNode, depth: number, position: number, key?: JsonNode | Key): void => {
    const index = at++
    tree.depth[index] = depth
    tree.kind[index] = VALUE_KINDS.indexOf(kindOf(value))
    tree.start[index] = positions.of(value.start)
    tree.end[index] = positions.of(value.end)
    tree.keyStart[index] = key === undefined ? 0 : positions.of(key.start)
    tree.keyEnd[index] = key === undefined ? 0 : positions.of(key.end)
    tree.position[index] = position
    tree.children[index] = value.members?.length ?? value.items?.length ?? 0
    value.members?.forEach((member, i) => add(member.value, depth + 1, i, member.key))
    value.items?.forEach((item, i) => add(item, depth + 1, i))
    tree.next[index] = at
  }
  add(node, 0, 0)
  return tree
}

interface Key {
  start: number
  end: number
}

function countOf({ members = [], items = [] }: JsonNode): number {
  let count = 1
  for (const { value } of members) count += countOf(value)
  for (const item of items) count += countOf(item)
  return count
}

function kindOf({ members, items, value }: JsonNode): (typeof VALUE_KINDS)[number] {
  if (members !== undefined) return 'object'
  if (items !== undefined) return 'array'
  if (typeof value === 'string') return 'string'
  return typeof value === 'number' ? 'number' : 'literal'
}

/** Characters between two positions that are remembered. */
const STEP = 1024

/** Positions of characters (UTF-16 code units) as positions of bytes (UTF-8). */
class BytePositions {
  readonly #text: string
  readonly #marks: number[] = []

  constructor(text: string, offset: number) {
    this.#text = text
    let bytes = offset
    for (let at = 0; at <= text.length; at += STEP) {
      this.#marks.push(bytes)
      bytes += this.#sizeOf(at, Math.min(at + STEP, text.length))
    }
  }

  of(position: number): number {
    const mark = Math.floor(position / STEP)
    return (this.#marks[mark] ?? 0) + this.#sizeOf(mark * STEP, position)
  }

  #sizeOf(from: number, to: number): number {
    let bytes = 0
    for (let at = from; at < to; at++) {
      const code = this.#text.charCodeAt(at)
      if (code < 0x80) bytes++
      else if (code < 0x800) bytes += 2
      // Each half of a surrogate pair counts as half of four bytes; text that was UTF-8 has no other ones.
      else bytes += code >= 0xd800 && code <= 0xdfff ? 2 : 3
    }
    return bytes
  }
}
