import { toBase64 } from '../../jsonrpc/base64.js'
import { RpcError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, type Request, isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { HEADER_MISMATCH } from '../../protocol/errors.js'
import type { MethodFacts } from '../../protocol/methods.js'
import type { HttpContext } from './http-context.js'

/*
 * Headers that say what the body says, so that others can route a request
 * without reading it. What they route by must be what is served.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
 */

/** A parameter of a tool that is mirrored in a header `Mcp-Param-…`. */
export interface HeaderParameter {
  readonly name: string
  /** Where its value stands in the arguments. */
  readonly path: readonly string[]
  readonly type: string
}

export function mismatch(problem: string): RpcError {
  return new RpcError(HEADER_MISMATCH, `Header mismatch: ${problem}`)
}

/** Throws, or rejects, where a header does not say what the body says. */
export function checkRoutingHeaders(
  visit: HttpContext,
  { method, params }: Request,
  facts: MethodFacts | undefined,
  parametersOf: (tool: string) => readonly HeaderParameter[] | Promise<readonly HeaderParameter[]>,
): void | Promise<void> {
  const said = visit.header('mcp-method')
  if (said === undefined)
    throw mismatch(`the header Mcp-Method is missing; it must be ${truncateJson(method)}`)
  if (said.trim() !== method)
    throw mismatch(`the header Mcp-Method does not say ${truncateJson(method)}, as the body does`)
  if (facts?.nameParam === undefined || params === undefined) return
  const name = params[facts.nameParam]
  if (typeof name !== 'string') return
  checkValue('Mcp-Name', visit.header('mcp-name'), name)
  if (facts.paramHeaders === true)
    return andThen(parametersOf(name), (parameters) => checkParameters(visit, params, parameters))
}

/** The headers that say what the body of a request says: what `checkRoutingHeaders` asks for. */
export function routingHeadersOf(
  { method, params = {} }: Request,
  { nameParam = '', paramHeaders = false }: MethodFacts,
  parametersOf: (tool: string) => readonly HeaderParameter[],
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { 'Mcp-Method': method }
  const name = params[nameParam]
  if (typeof name !== 'string') return headers
  headers['Mcp-Name'] = encode(name)
  for (const parameter of paramHeaders ? parametersOf(name) : []) {
    const value = valueAt(params['arguments'], parameter.path)
    if (value === undefined || value === null || typeof value === 'object') continue
    headers[`Mcp-Param-${parameter.name}`] = encode(
      typeof value === 'string' ? value : JSON.stringify(value),
    )
  }
  return headers
}

function checkParameters(
  visit: HttpContext,
  params: Params,
  parameters: readonly HeaderParameter[],
): void {
  for (const { name, path } of parameters) {
    const header = visit.header(`mcp-param-${name.toLowerCase()}`)
    const value = valueAt(params['arguments'], path)
    if (value === undefined || value === null) {
      if (header !== undefined)
        throw mismatch(
          `the header Mcp-Param-${name} was sent, but ${path.join('.')} is not in the arguments`,
        )
    } else if (typeof value !== 'object')
      checkValue(`Mcp-Param-${name}`, header, value as string | number | boolean)
  }
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value
  for (const key of path) {
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined
    found = found[key]
  }
  return found
}

function checkValue(
  header: string,
  written: string | undefined,
  value: string | number | boolean,
): void {
  if (written === undefined) throw mismatch(`the header ${header} is missing`)
  const decoded = decode(written.trim())
  if (decoded === undefined)
    throw mismatch(
      `the header ${header} has characters that it must not have, or Base64 that cannot be read`,
    )
  const same =
    typeof value === 'number'
      ? isNumber(decoded) && Number(decoded) === value
      : decoded === String(value)
  if (!same) throw mismatch(`the header ${header} does not say what the body says`)
}

function isNumber(text: string): boolean {
  return /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)
}

/** Base64 to the letter: what is lenient in one place is a hole in another. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The value that a header stands for; undefined where it stands for none. */
function decode(written: string): string | undefined {
  if (/[^\t\u0020-\u007e]/.test(written)) return undefined
  if (!written.startsWith('=?base64?') || !written.endsWith('?=') || written.length < 11)
    return written
  const encoded = written.slice(9, -2)
  if (!BASE64.test(encoded)) return undefined
  try {
    const binary = atob(encoded)
    // The last character may have bits that stand for nothing: who sets them has written it in another way than others do.
    if (btoa(binary) !== encoded) return undefined
    return utf8.decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)))
  } catch {
    return undefined
  }
}

/** A value as a header can carry it. */
function encode(value: string): string {
  if (
    /^[\u0021-\u007e](?:[\u0020-\u007e]*[\u0021-\u007e])?$/.test(value) &&
    !value.startsWith('=?base64?')
  )
    return value
  return `=?base64?${toBase64(new TextEncoder().encode(value))}?=`
}
