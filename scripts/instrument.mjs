// Makes every function of emitted JavaScript files report when it is entered, to count re-entries:
// calls that come back into a file that has passed the request on, through a callback or an object that it handed down.
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'vite'

const FUNCTIONS = new Set(['ArrowFunctionExpression', 'FunctionExpression', 'FunctionDeclaration'])
/** Members that only hold data, and cannot be wrapped in a function. */
const SKIPPED_KINDS = new Set(['constructor', 'get', 'set'])

/** Instruments all files of a folder. They report to `enter` of a `ReentryCounter`. */
export function instrumentFolder(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.js')) continue
    const path = join(folder, name)
    writeFileSync(path, instrument(readFileSync(path, 'utf8'), name.replace(/\.js$/, '.ts')))
  }
}

/** The code with `body` of each function replaced by `$enter(file, () => body)`. */
function instrument(code, file) {
  const edits = []
  const visit = (node, parent) => {
    if (typeof node?.type === 'string' && FUNCTIONS.has(node.type) && !isSkipped(node, parent))
      edits.push(...wrap(node, file))
    const children = Object.values(node).filter((each) => each !== null && typeof each === 'object')
    for (const child of children) visit(child, Array.isArray(node) ? parent : node)
  }
  visit(parseAst(code))
  // From the end. The end of an outer function comes after that of an inner one at the same place.
  edits.sort((a, b) => b.at - a.at || b.length - a.length)
  for (const { at, text } of edits) code = code.slice(0, at) + text + code.slice(at)
  return code
}

const isSkipped = (node, parent) =>
  node.generator || (parent?.value === node && SKIPPED_KINDS.has(parent.kind))

function wrap({ async: isAsync, body: { type, start, end } }, file) {
  const enter = `globalThis.$enter(${JSON.stringify(file)}, ${isAsync ? 'async ' : ''}() => `
  const [open, close] =
    type === 'BlockStatement' ? [`{ return ${enter}`, ') }'] : [`${enter}(`, '))']
  const length = end - start
  return [
    { at: start, text: open, length: -length },
    { at: end, text: close, length },
  ]
}

/** Follows the path of a request from file to file, also over promises and timers. */
export class ReentryCounter {
  #chains = new AsyncLocalStorage()
  #request = 0
  #counts = new Map()

  constructor() {
    globalThis.$enter = (file, body) => this.#enter(file, body)
  }

  /** Runs a request; returns how often each file was re-entered, by `from → to`. */
  async count(request) {
    this.#request++
    this.#counts = new Map()
    await this.#chains.exit(request)
    return this.#counts
  }

  #enter(file, body) {
    const store = this.#chains.getStore()
    // Connections and streams have the context of the request that opened them.
    const chain = store?.request === this.#request ? store.chain : []
    if (chain.at(-1) === file) return body()
    const at = chain.lastIndexOf(file)
    if (at !== -1) {
      const edge = `${chain.at(-1)} → ${file}`
      this.#counts.set(edge, (this.#counts.get(edge) ?? 0) + 1)
    }
    const next = at === -1 ? [...chain, file] : chain.slice(0, at + 1)
    return this.#chains.run({ request: this.#request, chain: next }, body)
  }
}
