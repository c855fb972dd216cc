import { expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { createServer, sample, tool } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'

/* The tools of a sampling request, as the client receives them: with the fields of its revision. */

const WITH_TOOLS = revisions.filter(({ samplingTools }) => samplingTools)
const array = { type: 'array', items: { type: 'number' } }

it.each(WITH_TOOLS.map((revision) => [revision.id, revision] as const))(
  'in %s',
  async (id, its) => {
    const full = {
      name: 'full',
      title: 'Full',
      description: 'Every field.',
      inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
      outputSchema: { type: 'object' },
      annotations: { title: 'All', readOnlyHint: true },
      icons: [{ src: 'https://example.com/i.png', sizes: ['48x48'] }],
      _meta: { 'example.com/a': 1 },
    }
    const unknown = {
      name: 'unknown',
      title: null,
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: false, extra: 1 },
      outputSchema: array,
      extra: 1,
    }
    const server = createServer({
      name: 'sampling',
      version: '1',
      tools: [
        tool({
          name: 'it',
          run: async (_, call) => {
            const tools = [full, unknown] as never
            await call.ask({
              it: sample({ messages: [], maxTokens: 5, tools, toolChoice: { mode: 'auto' } }),
            })
            return 'done'
          },
        }),
      ],
    })
    const seen: unknown[] = []
    await using client = await connect(memory(server), {
      revision: id,
      sample: ({ tools, toolChoice }) => {
        seen.push({ tools, toolChoice })
        return { role: 'assistant', content: { type: 'text', text: '' }, model: 'm' }
      },
    })
    await client.callTool('it')
    expect(seen).toEqual([
      {
        tools: [
          full,
          {
            name: 'unknown',
            inputSchema: { type: 'object' },
            annotations: { readOnlyHint: false },
            ...(its.structuredContent === 'any' ? { outputSchema: array } : {}),
          },
        ],
        toolChoice: { mode: 'auto' },
      },
    ])
  },
)
