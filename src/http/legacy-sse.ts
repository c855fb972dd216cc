import { checkNames } from '../schema/names.js'
import type { LegacySsePaths } from '../transports/http/legacy-sse/router.js'
import { type HttpOptions, LEGACY_SSE_NAMES, type LegacySseOptions } from './options.js'
import { parseUrl } from '../runtime.js'

/** The paths of HTTP+SSE; undefined if it is off. `endpoint` is the path of Streamable HTTP. */
export function legacySsePaths(
  legacySse: HttpOptions['legacySse'],
  endpoint: string | undefined,
): LegacySsePaths | undefined {
  if (legacySse === undefined || legacySse === false) return undefined
  if (legacySse !== true) check(legacySse)
  const { path = '/sse', messagesPath = '/messages' } = legacySse === true ? {} : legacySse
  if (resolved(path, '/') !== path) throw invalid('path', 'a path such as /sse', path)
  const messages = resolved(messagesPath, path)
  if (messages === undefined || (messagesPath.startsWith('/') && messages !== messagesPath))
    throw invalid('messagesPath', 'a path such as /messages', messagesPath)
  if (new Set([path, messages, endpoint]).size < 3)
    throw new TypeError(
      `legacySse: the event stream, the messages and the MCP endpoint must have different paths, not ${path}, ${messages} and ${endpoint ?? ''}`,
    )
  return { stream: path, messages, reference: messagesPath }
}

/** Options may be written in JavaScript. */
function check(given: LegacySseOptions): void {
  if (typeof given !== 'object' || given === null)
    throw new TypeError('"legacySse" must be true, false, or an object with paths')
  checkNames('legacySse', given, LEGACY_SSE_NAMES)
}

/** The path of a reference; undefined if it has more than a path. */
function resolved(reference: string, base: string): string | undefined {
  const root = 'http://localhost'
  const url = typeof reference === 'string' ? parseUrl(reference, root + base) : undefined
  if (url === undefined) return undefined
  const { origin, pathname, search, hash } = url
  const isPath = origin === root && search === '' && hash === '' && !/[?#]/.test(reference)
  return isPath && !pathname.endsWith('/') ? pathname : undefined
}

function invalid(name: string, expected: string, given: string): TypeError {
  return new TypeError(`legacySse: "${name}" must be ${expected}, not ${JSON.stringify(given)}`)
}
