import { describe, expect, it } from 'vitest'
import { Judge, fault } from './judge.js'

/* The judge itself must be able to say no. */

function verdict(...frames: [side: 'sent' | 'received', frame: string][]): string[] {
  const found: string[] = []
  const judge = new Judge((violation) => found.push(violation.split('\n')[0] ?? ''))
  for (const [side, frame] of frames) judge.hear(side, frame)
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

describe('the judge', () => {
  it('lets a right conversation pass', () => {
    expect(
      verdict(...open('2025-06-18'), call, [
        'sent',
        '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}',
      ]),
    ).toEqual([])
  })
  it('sees content of a later revision', () => {
    const audio =
      '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"audio","data":"AA","mimeType":"audio/wav"}]}}'
    expect(verdict(...open('2024-11-05'), call, ['sent', audio])).toHaveLength(1)
    expect(verdict(...open('2025-03-26'), call, ['sent', audio])).toEqual([])
  })
  it('sees a result without its type', () => {
    const described: ['received', string] = [
      'received',
      '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}',
    ]
    expect(
      verdict(described, ['sent', '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}']).length,
    ).toBeGreaterThan(0)
    expect(
      verdict(described, [
        'sent',
        '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}',
      ]),
    ).toEqual([])
  })
  it('sees a null id where there must be none', () => {
    const error: ['sent', string] = [
      'sent',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
    ]
    expect(verdict(...open('2025-11-25'), error)).toHaveLength(1)
    expect(verdict(...open('2025-06-18'), error)).toEqual([])
  })
  it('sees a wrong notification, a wrong request and text', () => {
    expect(
      verdict(...open('2025-06-18'), ['sent', '{"jsonrpc":"2.0","method":"notifications/nope"}']),
    ).toHaveLength(1)
    expect(verdict(...open('2025-06-18'), ['sent', 'hello'])).toEqual(['not JSON: hello'])
    expect(
      verdict(
        ...open('2025-06-18'),
        ['received', '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}'],
        ['sent', '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'],
      ),
    ).toHaveLength(1)
  })
  it('knows its definitions', () => {
    expect(fault('2025-06-18', 'Nope', {})).toBe('the schema of 2025-06-18 has no Nope')
    expect(fault('1999-01-01', 'Tool', {})).toBe('no schema of 1999-01-01')
  })
})
