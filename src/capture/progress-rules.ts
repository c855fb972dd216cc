import type { FrameFindings } from './findings.js'
import type { Direction } from './format.js'
import { memberOf, valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Link } from './operations.js'

/** Tokens that are remembered; with more, unknown ones are not reported. */
const MAX_TOKENS = 100_000
const MAX_TOKEN = 256

interface Progress {
  last: number | undefined
  isDone: boolean
}

/** Progress names the token of a request in progress, and increases. */
export class ProgressRules {
  readonly #tokens = { in: new Map<unknown, Progress>(), out: new Map<unknown, Progress>() }
  #hasLoss = false

  /** Messages were lost. One of them may be a request that reuses a token. */
  noteLoss(): void {
    this.#hasLoss = true
    this.#tokens.in.clear()
    this.#tokens.out.clear()
  }

  check(message: Message, dir: Direction, link: Link, found: FrameFindings): void {
    const { kind, method, result } = message
    const { operation, mayLackRequest = false } = link
    if (kind === 'request' && operation !== undefined) {
      const tokens = this.#tokens[dir]
      const key = keyOf(operation.progressToken)
      if (key !== undefined && (tokens.size < MAX_TOKENS || tokens.has(key)))
        tokens.set(key, { last: undefined, isDone: false })
    }
    if (kind === 'response' && operation !== undefined) {
      const progress = this.#tokens[operation.dir].get(keyOf(operation.progressToken))
      // A task goes on after the response that creates it.
      const type = valueAt(result, 'resultType') ?? 'complete'
      if (progress !== undefined && !operation.hasTask && type === 'complete')
        progress.isDone = true
    }
    if (kind === 'notification' && method === 'notifications/progress')
      this.#progress(message, dir, mayLackRequest || this.#hasLoss, found)
  }

  #progress(
    { params, node }: Message,
    dir: Direction,
    mayLackRequest: boolean,
    found: FrameFindings,
  ): void {
    const tokens = this.#tokens[dir === 'in' ? 'out' : 'in']
    const token = memberOf(params, 'progressToken')
    const progress = tokens.get(keyOf(token?.value))
    if (progress === undefined) {
      if (tokens.size < MAX_TOKENS && !mayLackRequest)
        found.text('progress', token ?? params ?? node, 'no request has this token')
      return
    }
    if (progress.isDone) found.text('progress', token ?? node, 'the request was answered before')
    const value = memberOf(params, 'progress')
    if (typeof value?.value !== 'number') return
    if (progress.last !== undefined && value.value <= progress.last)
      found.text('progress', value, `it was ${progress.last} before`)
    progress.last = value.value
  }
}

/** Of a long token, only the beginning and the length are kept. */
function keyOf(token: unknown): unknown {
  if (typeof token !== 'string' || token.length <= MAX_TOKEN) return token
  return `${token.slice(0, MAX_TOKEN)} ${token.length}`
}
