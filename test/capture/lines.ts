import { Analysis, type Row } from '../../src/capture/analysis.js'
import { type Direction, chunkRecord } from '../../src/capture/format.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'

/* Conversations as lines, and what the analysis makes of them. */

export const schemas = await loadSchemaChecks()

/** Lines with their direction: `>` from the client, `<` from the server. A newline is added, unless the line ends with `$`. */
export function rowsOf(...lines: readonly string[]): Row[] {
  const analysis = new Analysis(schemas)
  const offsets = { in: 0, out: 0 }
  const rows = lines.flatMap((line, index) => {
    const dir: Direction = line.startsWith('>') ? 'in' : 'out'
    const text = line.endsWith('$') ? line.slice(2, -1) : `${line.slice(2)}\n`
    const bytes = new TextEncoder().encode(text)
    const record = chunkRecord(dir, (index + 1) * 1_000_000, offsets[dir], bytes)
    offsets[dir] += bytes.length
    return analysis.add(record)
  })
  rows.push(...analysis.add({ type: 'event', event: 'exit', ns: 1 }).slice(1))
  return [...rows, ...analysis.end()]
}

/** `rule: the bytes that it names` of each finding. */
export function findingsOf(...lines: readonly string[]): string[] {
  const sent = (mark: string) =>
    new TextEncoder().encode(
      lines
        .filter((line) => line.startsWith(mark))
        .map((line) => (line.endsWith('$') ? line.slice(2, -1) : `${line.slice(2)}\n`))
        .join(''),
    )
  const streams = { in: sent('>'), out: sent('<') }
  return rowsOf(...lines).flatMap(({ findings }) =>
    findings.map(({ rule, dir, start, end }) => {
      const bytes = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
        streams[dir].subarray(start, end),
      )
      return `${rule}: ${bytes}`
    }),
  )
}

export const request = (id: unknown, method: string, params?: object) =>
  `> ${JSON.stringify({ jsonrpc: '2.0', id, method, params })}`
export const asked = (id: unknown, method: string, params?: object) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', id, method, params })}`
export const result = (id: unknown, value: object) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', id, result: value })}`
export const handshake = (version: string, capabilities: object = { tools: {} }) => [
  request(0, 'initialize', {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  }),
  result(0, { protocolVersion: version, capabilities, serverInfo: { name: 's', version: '1' } }),
  '> {"jsonrpc":"2.0","method":"notifications/initialized"}',
]
export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
export const ping = '> {"jsonrpc":"2.0","id":1,"method":"ping"}'
export const pong = '< {"jsonrpc":"2.0","id":1,"result":{}}'
