import type { Tree } from '../model/tree.js'

/** Values of a message that are all shown at first; of a larger one, only those up to a depth. */
const MAX_EXPANDED = 400
const FIRST_LEVELS = 3

/** Which values are expanded at first. */
export function firstExpanded(tree: Tree): Uint8Array {
  const isSmall = tree.depth.length <= MAX_EXPANDED
  return Uint8Array.from(tree.depth, (depth, node) => {
    const isOpen = isSmall || depth < FIRST_LEVELS
    // A long list would push everything else out of sight.
    return isOpen && (tree.children[node] ?? 0) <= MAX_EXPANDED ? 1 : 0
  })
}

/** The values whose parents are all expanded. */
export function visibleNodes(tree: Tree, expanded: Uint8Array): Uint32Array {
  const visible = new Uint32Array(tree.depth.length)
  let count = 0
  for (let node = 0; node < tree.depth.length;) {
    visible[count++] = node
    node = expanded[node] === 1 ? node + 1 : (tree.next[node] ?? Infinity)
  }
  return visible.subarray(0, count)
}

/** The values that contain a value, outermost first. */
export function ancestorsOf(tree: Tree, node: number): number[] {
  const found: number[] = []
  for (let at = 0; at < node;) {
    if (node < (tree.next[at] ?? 0)) {
      found.push(at)
      at++
    } else at = tree.next[at] ?? Infinity
  }
  return found
}

/** The innermost value that contains bytes (with its name); undefined if they are outside. */
export function nodeAt(tree: Tree, start: number, end: number): number | undefined {
  const contains = (node: number) => {
    const hasKey = tree.keyEnd[node] !== tree.keyStart[node]
    const first = (hasKey ? tree.keyStart[node] : tree.start[node]) ?? 0
    return first <= start && Math.max(end, start + 1) <= (tree.end[node] ?? 0)
  }
  if (tree.depth.length === 0 || !contains(0)) return undefined
  let found = 0
  for (let at = 1; at < (tree.next[found] ?? 0);) {
    if (contains(at)) {
      found = at
      at++
    } else at = tree.next[at] ?? Infinity
  }
  return found
}

/** The path of a value, such as `params.arguments.items[2]`. */
export function pathOf(tree: Tree, node: number, nameOf: (node: number) => string): string {
  return [...ancestorsOf(tree, node).slice(1), ...(node === 0 ? [] : [node])]
    .map((each) => {
      const name = nameOf(each)
      return name === '' ? `[${tree.position[each]}]` : `.${name}`
    })
    .join('')
    .replace(/^\./, '')
}
