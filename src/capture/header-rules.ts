import { PROTOCOL_VERSION } from '../protocol/meta.js'
import { METHODS } from '../protocol/methods.js'
import type { Revision } from '../protocol/revisions/index.js'
import { headerParameters } from '../schema/headers.js'
import { type JsonSchema, isObject } from '../schema/issue.js'
import type { FrameFindings } from './findings.js'
import type { JsonNode } from './json.js'
import { memberOf, stringAt } from './lazy-json.js'
import type { Message } from './messages.js'

/** Maximum number of parameters that are compared. */
const MAX_PARAMETERS = 100

/** The HTTP headers of an exchange: of the request that carried a message. */
export interface ExchangeHeaders {
  /** The value of a header, by its name in lower case. */
  get(name: string): string | undefined
}

/** Compares the headers of a stateless request with its body. `inputSchema`: that of the tool, if it is known. */
export function checkHeaders(
  { kind, method = '', params, node }: Message,
  headers: ExchangeHeaders,
  revision: Revision | undefined,
  inputSchema: JsonSchema | undefined,
  found: FrameFindings,
): void {
  // Headers of notifications are not defined.
  if (kind !== 'request' || revision?.lifecycle !== 'stateless') return
  const version = memberOf(memberOf(params, '_meta'), PROTOCOL_VERSION)
  const compare = (header: string, value: JsonNode | undefined, isEncoded: boolean) => {
    const problem = problemOf(headers.get(header.toLowerCase()), value?.value, isEncoded)
    if (problem !== undefined) found.text('header-mismatch', value ?? node, `${header} ${problem}`)
  }
  compare('MCP-Protocol-Version', version, false)
  compare('Mcp-Method', memberOf(node, 'method'), false)
  const { nameParam, paramHeaders = false } = METHODS.get(method) ?? {}
  if (nameParam !== undefined && stringAt(params, nameParam) !== undefined)
    compare('Mcp-Name', memberOf(params, nameParam), true)
  if (!paramHeaders || inputSchema === undefined) return
  for (const { name, path } of parametersOf(inputSchema).slice(0, MAX_PARAMETERS)) {
    let value = memberOf(params, 'arguments')
    for (const member of path) value = memberOf(value, member)
    if (!isObject(value?.value)) compare(`Mcp-Param-${name}`, value, true)
  }
}

type Parameters = ReturnType<typeof headerParameters>

const known = new WeakMap<JsonSchema, Parameters>()

function parametersOf(schema: JsonSchema): Parameters {
  let parameters = known.get(schema)
  if (parameters === undefined) {
    try {
      parameters = headerParameters(schema)
    } catch {
      parameters = [] // clients do not use such a tool
    }
    known.set(schema, parameters)
  }
  return parameters
}

function problemOf(
  written: string | undefined,
  value: unknown,
  isEncoded: boolean,
): string | undefined {
  if (value === undefined || value === null)
    return written === undefined ? undefined : 'was sent, but the body has no such value'
  if (written === undefined) return 'is missing'
  const text = isEncoded ? decoded(written.trim()) : written.trim()
  if (text === undefined) return 'has invalid Base64'
  const isSame =
    typeof value === 'number'
      ? text !== '' && Number(text) === value
      : text === (typeof value === 'string' ? value : JSON.stringify(value))
  return isSame ? undefined : `is ${JSON.stringify(text.slice(0, 100))}`
}

/** The value of a header that may be encoded as `=?base64?…?=`. */
function decoded(written: string): string | undefined {
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(written) ?? []
  if (encoded === undefined) return written
  try {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
