import { RpcError } from '../../jsonrpc/errors.js'
import { type Params, type Request, isObject, memberAt } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { HEADER_MISMATCH } from '../../protocol/errors.js'
import { PROTOCOL_VERSION } from '../../protocol/meta.js'
import type { MethodDescriptor } from '../../protocol/methods.js'
import { missingRequestMeta, readRequestMeta } from '../../protocol/revisions/request-meta.js'
import { encodeHeaderValue } from './client/parameter-headers.js'
import type { HttpContext } from './http-context.js'

/*
 * How stateless requests are recognized: clients with an `initialize` handshake use the same URL. And their headers that
 * repeat parts of the body, so that proxies can route a request without parsing it. They must match the body.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
 */

/** A parameter of a tool that is repeated in a header `Mcp-Param-…`. */
export interface RepeatedParameter {
  readonly name: string
  /** The path of its value in the arguments. */
  readonly path: readonly string[]
}

/** Throws if the `_meta` of a stateless request cannot be served: header and body disagree, a key is missing, or the revision is not supported. */
export function checkRequestMeta(request: Request, version: string | undefined): void {
  const meta = request.params?.['_meta']
  const named = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
  if (typeof named === 'string') {
    if (version === undefined)
      throw mismatch(
        `the header MCP-Protocol-Version is missing; it must be ${truncateJson(named)}`,
      )
    if (version !== named)
      throw mismatch(
        `the header MCP-Protocol-Version must be ${truncateJson(named)}, as in the body`,
      )
  }
  if (readRequestMeta(request) === undefined) throw missingRequestMeta(request.method)
}

function mismatch(problem: string): RpcError {
  return new RpcError(HEADER_MISMATCH, `Header mismatch: ${problem}`)
}

/** Throws if `Mcp-Method` or `Mcp-Name` does not match the body. */
export function checkRoutingHeaders(
  context: HttpContext,
  { method, params }: Request,
  descriptor: MethodDescriptor | undefined,
): void {
  const header = context.header('mcp-method')
  if (header === undefined)
    throw mismatch(`the header Mcp-Method is missing; it must be ${truncateJson(method)}`)
  if (header.trim() !== method)
    throw mismatch(`the header Mcp-Method must be ${truncateJson(method)}, as in the body`)
  if (descriptor?.nameParam === undefined) return
  const name = params?.[descriptor.nameParam]
  if (typeof name === 'string') checkValue('Mcp-Name', context.header('mcp-name'), name)
}

/** The routing headers of a request, as they are checked here. */
export function routingHeadersOf(
  { method, params = {} }: Request,
  { nameParam = '', paramHeaders = false }: MethodDescriptor,
  parametersOf: (tool: string) => readonly RepeatedParameter[],
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { 'Mcp-Method': method }
  const name = params[nameParam]
  if (typeof name !== 'string') return headers
  headers['Mcp-Name'] = encodeHeaderValue(name)
  for (const parameter of paramHeaders ? parametersOf(name) : []) {
    const value = memberAt(params['arguments'], parameter.path)
    if (value === undefined || value === null || typeof value === 'object') continue
    headers[`Mcp-Param-${parameter.name}`] = encodeHeaderValue(value as string | number | boolean) // not an object
  }
  return headers
}

/** Throws if a header `Mcp-Param-…` does not match the arguments. */
export function checkParameterHeaders(
  context: HttpContext,
  params: Params | undefined,
  parameters: readonly RepeatedParameter[],
): void {
  for (const { name, path } of parameters) {
    const header = context.header(`mcp-param-${name.toLowerCase()}`)
    const value = memberAt(params?.['arguments'], path)
    if (value === undefined || value === null) {
      if (header !== undefined)
        throw mismatch(
          `the header Mcp-Param-${name} was sent, but ${path.join('.')} is not in the arguments`,
        )
    } else if (typeof value !== 'object')
      checkValue(`Mcp-Param-${name}`, header, value as string | number | boolean)
  }
}

function checkValue(
  header: string,
  written: string | undefined,
  value: string | number | boolean,
): void {
  if (written === undefined) throw mismatch(`the header ${header} is missing`)
  const decoded = decode(written.trim())
  if (decoded === undefined)
    throw mismatch(`the header ${header} has invalid characters or invalid Base64`)
  const same =
    typeof value === 'number'
      ? isNumber(decoded) && Number(decoded) === value
      : decoded === String(value)
  if (!same) throw mismatch(`the header ${header} does not match the body`)
}

function isNumber(text: string): boolean {
  return /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)
}

/** Strict, so that a proxy and this server never read different values. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The value of a header; undefined if it is invalid. */
function decode(written: string): string | undefined {
  if (/[^\t\u0020-\u007e]/.test(written)) return undefined
  if (!written.startsWith('=?base64?') || !written.endsWith('?=') || written.length < 11)
    return written
  const encoded = written.slice(9, -2)
  if (!BASE64.test(encoded)) return undefined
  try {
    const binary = atob(encoded)
    // The last character may have unused bits that are set: not the canonical encoding.
    if (btoa(binary) !== encoded) return undefined
    return utf8.decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)))
  } catch {
    return undefined
  }
}
