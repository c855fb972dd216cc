import { useMemo, useState } from 'preact/hooks'
import type { FrameDetail } from '../model/frame-detail.js'
import { type Tree, VALUE_KINDS } from '../model/tree.js'
import { line, sizeText } from './format.js'
import { range, selectNode, selectedNode } from './state.js'
import { ancestorsOf, firstExpanded, pathOf, visibleNodes } from './tree-rows.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 22
const INDENT = 14
/** Deeper values are not indented further. */
const MAX_INDENT = 24
/** Bytes of a value, and characters of a text, that are shown. */
const MAX_VALUE = 300
const MAX_TEXT = 20_000

const decoder = new TextDecoder()

export function TreeView({ shown }: { shown: FrameDetail }) {
  const { tree } = shown
  if (tree === undefined) return <PlainText shown={shown} />
  return <Values shown={shown} tree={tree} />
}

/** What is not JSON. */
function PlainText({ shown: { bytes } }: { shown: FrameDetail }) {
  const text = decoder.decode(bytes.subarray(0, MAX_TEXT))
  return (
    <section class="tree" aria-label="Text">
      <p class="muted">
        {bytes.length === 0 ? 'No bytes were recorded.' : 'These bytes are not JSON:'}
      </p>
      <pre class="plain-text">{line(text).replaceAll('\\n', '\n')}</pre>
    </section>
  )
}

function Values({ shown, tree }: { shown: FrameDetail; tree: Tree }) {
  const { index } = shown.row
  const first = useMemo(() => firstExpanded(tree), [tree])
  /** What the user has expanded of one message. */
  const [chosen, setChosen] = useState({ index, expanded: first })
  const expanded = chosen.index === index ? chosen.expanded : first
  const { value: node } = selectedNode
  // A value that is selected elsewhere is made visible.
  const open = useMemo(() => withAncestors(tree, expanded, node), [tree, expanded, node])
  const visible = useMemo(() => visibleNodes(tree, open), [tree, open])
  const active = node === undefined ? undefined : positionIn(visible, node)
  const toggle = (which: number, isOpen: boolean) => {
    const next = open.slice()
    next[which] = isOpen ? 1 : 0
    setChosen({ index, expanded: next })
    // The selected value would be hidden: its ancestor is selected instead.
    if (!isOpen && node !== undefined && ancestorsOf(tree, node).includes(which)) selectNode(which)
  }
  const onKey = (event: KeyboardEvent) => {
    if (node === undefined) return
    if (event.key === 'ArrowRight') {
      if (open[node] === 1 && (tree.children[node] ?? 0) > 0) selectNode(node + 1)
      else toggle(node, true)
    } else if (event.key === 'ArrowLeft') {
      const parent = ancestorsOf(tree, node).at(-1)
      if (open[node] === 1 && (tree.children[node] ?? 0) > 0) toggle(node, false)
      else if (parent !== undefined) selectNode(parent)
    } else return
    event.preventDefault()
  }
  return (
    <section class="tree" aria-label="Fields">
      <VirtualList
        id="tree"
        label="Decoded fields"
        role="tree"
        count={visible.length}
        rowHeight={ROW_HEIGHT}
        active={active}
        reveal={range.value}
        content={index}
        onMove={(position) => selectNode(visible[position] ?? 0)}
        onKey={onKey}
        row={(position, id) => (
          <Value
            id={id}
            shown={shown}
            tree={tree}
            node={visible[position] ?? 0}
            isOpen={open[visible[position] ?? 0] === 1}
            isSelected={visible[position] === node}
            onToggle={toggle}
          />
        )}
      />
      <SelectedValue shown={shown} tree={tree} node={node} />
    </section>
  )
}

/** Also expands the ancestors of the selected value. */
function withAncestors(tree: Tree, expanded: Uint8Array, node: number | undefined): Uint8Array {
  const closed =
    node === undefined ? [] : ancestorsOf(tree, node).filter((each) => expanded[each] !== 1)
  if (closed.length === 0) return expanded
  const open = expanded.slice()
  for (const each of closed) open[each] = 1
  return open
}

function positionIn(visible: Uint32Array, node: number): number {
  let low = 0
  let high = visible.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((visible[middle] ?? 0) < node) low = middle + 1
    else high = middle
  }
  return low
}

interface ValueProperties {
  id: string
  shown: FrameDetail
  tree: Tree
  node: number
  isOpen: boolean
  isSelected: boolean
  onToggle(node: number, isOpen: boolean): void
}

function Value({ id, shown, tree, node, isOpen, isSelected, onToggle }: ValueProperties) {
  const depth = tree.depth[node] ?? 0
  const children = tree.children[node] ?? 0
  const kind = VALUE_KINDS[tree.kind[node] ?? 0] ?? 'literal'
  const isBranch = children > 0
  const name = nameOf(shown, tree, node)
  const isItem = name === '' && node > 0
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={depth + 1}
      aria-posinset={(tree.position[node] ?? 0) + 1}
      aria-expanded={isBranch ? isOpen : undefined}
      aria-selected={isSelected}
      class="value"
      style={{ paddingLeft: `${6 + Math.min(depth, MAX_INDENT) * INDENT}px` }}
      onClick={() => selectNode(node)}
      onDblClick={() => isBranch && onToggle(node, !isOpen)}
    >
      <span
        class="twisty"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation()
          if (isBranch) onToggle(node, !isOpen)
        }}
      >
        {isBranch && (isOpen ? '▾' : '▸')}
      </span>
      {name === '' ? undefined : <span class="key">{line(name)}</span>}
      {isItem ? <span class="key item">{tree.position[node]}</span> : undefined}
      <span class={`val val-${kind}`}>{valueText(shown, tree, node)}</span>
    </div>
  )
}

/** The name of a member as it is written, without quotation marks; empty for others. */
function nameOf({ bytes }: FrameDetail, tree: Tree, node: number): string {
  const start = tree.keyStart[node] ?? 0
  const end = tree.keyEnd[node] ?? 0
  if (start === end) return ''
  const name = decoder.decode(bytes.subarray(start + 1, Math.min(end - 1, start + 1 + MAX_VALUE)))
  return name === '' ? '""' : name
}

function valueText({ bytes }: FrameDetail, tree: Tree, node: number): string {
  const kind = VALUE_KINDS[tree.kind[node] ?? 0]
  const children = tree.children[node] ?? 0
  if (kind === 'object') return children === 0 ? '{}' : `{${children}}`
  if (kind === 'array') return children === 0 ? '[]' : `[${children}]`
  const start = tree.start[node] ?? 0
  const end = tree.end[node] ?? 0
  if (end - start <= MAX_VALUE) return line(decoder.decode(bytes.subarray(start, end)))
  const text = decoder.decode(bytes.subarray(start, start + MAX_VALUE))
  return `${line(text)}… ${sizeText(end - start)}`
}

interface SelectedProperties {
  shown: FrameDetail
  tree: Tree
  node: number | undefined
}

/** Where the selected value is; a text also as its reader sees it. */
function SelectedValue({ shown, tree, node }: SelectedProperties) {
  if (node === undefined) return <p class="path muted">Select a field to mark its bytes.</p>
  const path = pathOf(tree, node, (each) => nameOf(shown, tree, each))
  const bytes = range.value
  const text = decodedText(shown, tree, node)
  return (
    <>
      <p class="path" role="status">
        <span class="path-name">{path === '' ? '(whole message)' : line(path.slice(-300))}</span>
        {bytes === undefined ? undefined : (
          <span class="muted">
            bytes {bytes.start}–{bytes.end}
          </span>
        )}
      </p>
      {text === undefined ? undefined : (
        <pre class="decoded" aria-label="Decoded text" tabIndex={0}>
          {text}
        </pre>
      )}
    </>
  )
}

/** The decoded text of a string with line breaks or more than a line. */
function decodedText({ bytes }: FrameDetail, tree: Tree, node: number): string | undefined {
  if (VALUE_KINDS[tree.kind[node] ?? 0] !== 'string') return undefined
  const start = tree.start[node] ?? 0
  const end = tree.end[node] ?? 0
  if (end - start > 4 * MAX_TEXT) return undefined
  const text = String(JSON.parse(decoder.decode(bytes.subarray(start, end))))
  if (text.length < 60 && !text.includes('\n')) return undefined
  return text.slice(0, MAX_TEXT).split('\n').map(line).join('\n')
}
