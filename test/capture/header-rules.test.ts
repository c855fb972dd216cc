import { expect, it } from 'vitest'
import { FrameFindings } from '../../src/capture/findings.js'
import { checkHeaders } from '../../src/capture/header-rules.js'
import { parseJson } from '../../src/capture/json.js'
import { messagesOf } from '../../src/capture/messages.js'
import { newest, newestHandshakeRevision } from '../../src/protocol/revisions/index.js'
import type { JsonSchema } from '../../src/schema/issue.js'
import { META } from './lines.js'

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
  },
}
const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'grüß', arguments: { region: 'eu', count: 42 }, _meta: META },
}
const HEADERS = {
  'mcp-protocol-version': newest.id,
  'mcp-method': 'tools/call',
  'mcp-name': `=?base64?${Buffer.from('grüß').toString('base64')}?=`,
  'mcp-param-region': ' eu ',
  'mcp-param-count': '42.0',
}

/** `detail: bytes` of each finding. */
function mismatches(
  headers: Readonly<Record<string, string | undefined>>,
  body: object = CALL,
  revision = newest,
  schema: JsonSchema = SCHEMA,
): string[] {
  const text = JSON.stringify(body)
  const bytes = new TextEncoder().encode(text)
  const found = new FrameFindings({ dir: 'in', text, body: { start: 0, end: bytes.length } })
  const { node } = parseJson(text)
  const [message] = node === undefined ? [] : messagesOf(node, text)
  if (message !== undefined)
    checkHeaders(message, { get: (name) => headers[name] }, revision, schema, found)
  return found.list.map(
    ({ rule, detail, start, end }) =>
      `${rule} ${detail}: ${new TextDecoder().decode(bytes.subarray(start, end))}`,
  )
}

it('headers that match the body are no findings', () => {
  expect(mismatches(HEADERS)).toEqual([])
  expect(mismatches({}, CALL, newestHandshakeRevision)).toEqual([])
  expect(mismatches({}, { jsonrpc: '2.0', method: 'notifications/cancelled' })).toEqual([])
})

it.each([
  ['mcp-protocol-version', 'x', `MCP-Protocol-Version is "x": "${newest.id}"`],
  ['mcp-method', undefined, 'Mcp-Method is missing: "tools/call"'],
  ['mcp-name', 'gruss', 'Mcp-Name is "gruss": "grüß"'],
  ['mcp-name', '=?base64?%%?=', 'Mcp-Name has invalid Base64: "grüß"'],
  ['mcp-param-region', 'us', 'Mcp-Param-Region is "us": "eu"'],
  ['mcp-param-count', '', 'Mcp-Param-Count is "": 42'],
])('the header %s: %s is a finding', (name, value, expected) => {
  expect(mismatches({ ...HEADERS, [name]: value })).toEqual([`header-mismatch ${expected}`])
})

it('a header for a value that the body does not have is a finding', () => {
  const body = { ...CALL, params: { ...CALL.params, arguments: { region: 'eu' } } }
  expect(mismatches(HEADERS, body)).toEqual([
    `header-mismatch Mcp-Param-Count was sent, but the body has no such value: ${JSON.stringify(body)}`,
  ])
})

it('many parameters are compared up to a limit', () => {
  const names = Array.from({ length: 150 }, (_, index) => `p${index}`)
  const properties = Object.fromEntries(
    names.map((name) => [name, { type: 'string', 'x-mcp-header': name }]),
  )
  const values = Object.fromEntries(names.map((name) => [name, 'x']))
  const body = { ...CALL, params: { ...CALL.params, arguments: values } }
  const found = mismatches(HEADERS, body, newest, { type: 'object', properties })
  expect(found.length).toBe(100)
  expect(found[99]).toBe('header-mismatch Mcp-Param-p99 is missing: "x"')
})
