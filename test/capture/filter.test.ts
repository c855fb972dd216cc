import { describe, expect, it } from 'vitest'
import type { Row } from '../../src/capture/analysis.js'
import { parseFilter } from '../../src/capture/filter.js'

const row: Row = {
  kind: 'response',
  ns: 1,
  dir: 'out',
  start: 100,
  end: 2100,
  revision: '2025-11-25',
  method: 'tools/call',
  target: 'add',
  id: '"x"',
  status: 'error',
  duration: 150_000_000,
  progress: 0,
  operation: undefined,
  text: 'Division by zero',
  findings: [
    { rule: 'schema', severity: 'error', clause: '', dir: 'out', start: 0, end: 1, detail: '' },
  ],
}

describe('a filter', () => {
  it.each([
    '',
    'method:tools/call dir:out status:error',
    'dur>100ms',
    'dur>=0.15s',
    'dur<151',
    'size>1kb',
    'size<=2000b',
    'tool:add',
    'tool:sub,add',
    'TOOL:ADD'.toLowerCase(),
    'method:tools/*',
    'method:*call',
    'method:t*l*l',
    'finding:*',
    'finding:schema',
    'finding:error',
    'id:x',
    'id:"x"',
    'rev:2025*',
    'kind:response,request',
    '-dir:in',
    'division',
  ])('%s matches', (filter) => {
    expect(parseFilter(filter)(row)).toBe(true)
  })

  it.each([
    'dir:in',
    'dur>150ms',
    'tool:ad',
    'method:*x*',
    'method:tools/call*call',
    '-finding:*',
    'status:error tool:sub',
    'nothing',
  ])('%s does not match', (filter) => {
    expect(parseFilter(filter)(row)).toBe(false)
  })

  it.each([
    ['speed:1', 'unknown field "speed"; expected method, tool, dir'],
    ['constructor:1', 'unknown field'],
    ['tool:', 'tool: needs a value'],
    ['dur>x', 'dur> needs a number with a unit (ns, us, ms, s), not "x"'],
    ['dur>1kb', 'not "1kb"'],
    ['id>1', 'id cannot be compared'],
  ])('%s is an error', (filter, message) => {
    expect(() => parseFilter(filter)).toThrow(message)
  })

  it('does not match what a row lacks', () => {
    const event: Row = { ...row, kind: 'event', dir: undefined, duration: undefined, findings: [] }
    for (const filter of ['dir:*', 'dur>0', 'size>0', 'finding:*'])
      expect(parseFilter(filter)(event)).toBe(false)
  })
})
