import { describe, expect, it } from 'vitest'
import { METHODS } from '../../src/protocol/methods.js'
import { RESULTS, SchemaValidator, schemaError } from './schema-validator.js'

/* The validator must report violations. */

function violations(...frames: [side: 'sent' | 'received', frame: string][]): string[] {
  const found: string[] = []
  const validator = new SchemaValidator((violation) => found.push(violation.split('\n')[0] ?? ''))
  for (const [side, frame] of frames) validator.add(side, frame)
  return found
}
const open = (revision: string): [side: 'sent' | 'received', frame: string][] => [
  [
    'received',
    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"${revision}","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
  ],
  [
    'sent',
    `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"${revision}","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
  ],
]
const call: ['received', string] = [
  'received',
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}',
]

describe('SchemaValidator', () => {
  it('accepts a valid conversation', () => {
    expect(
      violations(...open('2025-06-18'), call, [
        'sent',
        '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}',
      ]),
    ).toEqual([])
  })
  it('reports content of a later revision', () => {
    const audio =
      '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"audio","data":"AA","mimeType":"audio/wav"}]}}'
    expect(violations(...open('2024-11-05'), call, ['sent', audio])).toHaveLength(1)
    expect(violations(...open('2025-03-26'), call, ['sent', audio])).toEqual([])
  })
  it('reports a result without resultType', () => {
    const described: ['received', string] = [
      'received',
      '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}',
    ]
    expect(
      violations(described, ['sent', '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}']).length,
    ).toBeGreaterThan(0)
    expect(
      violations(described, [
        'sent',
        '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}',
      ]),
    ).toEqual([])
  })
  it('reports id null in revisions without it', () => {
    const error: ['sent', string] = [
      'sent',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
    ]
    expect(violations(...open('2025-11-25'), error)).toHaveLength(1)
    expect(violations(...open('2025-06-18'), error)).toEqual([])
  })
  it('reports an invalid notification, an invalid request and text that is not JSON', () => {
    expect(
      violations(...open('2025-06-18'), [
        'sent',
        '{"jsonrpc":"2.0","method":"notifications/nope"}',
      ]),
    ).toHaveLength(1)
    expect(violations(...open('2025-06-18'), ['sent', 'hello'])).toEqual(['not JSON: hello'])
    expect(
      violations(
        ...open('2025-06-18'),
        ['received', '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}'],
        ['sent', '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'],
      ),
    ).toHaveLength(1)
  })
  it('reports unknown definitions and revisions', () => {
    expect(schemaError('2025-06-18', 'Nope', {})).toBe('the schema of 2025-06-18 has no Nope')
    expect(schemaError('1999-01-01', 'Tool', {})).toBe('no schema of 1999-01-01')
  })
})

it('validates the result of every method', () => {
  expect(
    [...METHODS.keys()].filter((method) => RESULTS[method] === undefined),
    'add it to RESULTS in test/official/schema-validator.ts',
  ).toEqual([])
})
