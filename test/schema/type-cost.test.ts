import { describe, expect, it } from 'vitest'
import { ENTRY, compile } from './compiler.js'

/* Types that are inferred from JSON Schemas must be cheap: a server may have a hundred tools. */

/** A program with some tools, each with a schema of its own. */
function program(tools: number): string {
  const head = `import { createServer, tool } from ${JSON.stringify(ENTRY)}\n`
  const definitions = Array.from({ length: tools }, (_, index) => definition(index))
  const names = Array.from({ length: tools }, (_, index) => `tool${index}`)
  return `${head}${definitions.join('')}\nexport const server = createServer({ name: 'many', version: '1', tools: [${names.join(', ')}] })\n`
}

function definition(index: number): string {
  return `
const tool${index} = tool({
  name: 'tool_${index}',
  description: 'The tool ${index}.',
  input: {
    type: 'object',
    properties: {
      id${index}: { type: 'integer', minimum: ${index} },
      text: { type: 'string', description: 'A text.' },
      mode: { enum: ['fast${index}', 'slow${index}'] },
      tags: { type: 'array', items: { type: 'string' } },
      address: {
        type: 'object',
        properties: { street: { type: 'string' }, city${index}: { type: 'string' }, point: { type: 'object', properties: { x: { type: 'number' }, y: { type: 'number' } }, required: ['x', 'y'] } },
        required: ['street', 'point'],
      },
      rows: { type: 'array', items: { type: 'object', properties: { key: { type: 'string' }, value${index}: { type: ['number', 'null'] } }, required: ['key'] } },
    },
    required: ['id${index}', 'mode', 'address'],
    additionalProperties: false,
  },
  output: { type: 'object', properties: { total: { type: 'number' }, label: { type: 'string' } }, required: ['total'] },
  run({ id${index}, mode, address, rows, ...rest }) {
    const exactly: 'fast${index}' | 'slow${index}' = mode
    const far: number = address.point.x + address.point.y
    const city: string | undefined = address.city${index}
    const values = rows?.map(({ key, value${index} }) => key.length + (value${index} ?? 0)) ?? []
    // @ts-expect-error it may be missing
    void rest.tags.length
    return { total: id${index} + far + values.length, label: exactly + (city ?? '') }
  },
})
`
}

function instantiations(tools: number): number {
  const { output, status } = compile(
    { program: program(tools) },
    '--extendedDiagnostics',
    '--noEmit',
    '--skipLibCheck',
  )
  expect(output).not.toContain('error TS')
  expect(status).toBe(0)
  const [, count] = /^Instantiations:\s+(\d+)$/m.exec(output) ?? []
  expect(count).toBeDefined()
  return Number(count)
}

describe('the types of 100 tools', { timeout: 600_000 }, () => {
  it('take fewer than 115,000 instantiations', () => {
    const none = instantiations(0)
    const many = instantiations(100)
    expect(many - none).toBeGreaterThan(1_000)
    expect(many - none).toBeLessThan(115_000)
  })

  it('take linear time in the number of tools', () => {
    const [none, few, many] = [instantiations(0), instantiations(50), instantiations(100)]
    expect((many - none) / (few - none)).toBeLessThan(2.5)
  })
})
