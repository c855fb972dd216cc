// A server with every feature, from the built package. Its tools trigger changes.
import { ToolError, createServer, prompt, resource, tool } from '../../dist/index.js'

const number = { type: 'number' }

export function everythingServer() {
  const server = createServer({
    name: 'everything',
    version: '1.0.0',
    instructions: 'Use everything.',
    pageSize: 4,
    tools: [
      tool({
        name: 'sum',
        input: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
        output: { type: 'object', properties: { sum: number }, required: ['sum'] },
        run: ({ a, b }) => ({ sum: a + b }),
      }),
      tool({
        name: 'talk',
        description: 'Log a little.',
        run(_, { log }) {
          log.debug('low')
          log.warning({ high: true }, 'talker')
          return 'said'
        },
      }),
      tool({
        name: 'change',
        description: 'Change a list and a resource.',
        run() {
          if (!server.tools.remove('extra'))
            server.tools.add(tool({ name: 'extra', run: () => 'new' }))
          server.updated('config://app')
          return 'changed'
        },
      }),
      tool({
        name: 'fail',
        run() {
          throw new ToolError('As planned.')
        },
      }),
    ],
    resources: [
      resource({
        uri: 'config://app',
        name: 'app',
        title: 'App',
        mimeType: 'application/json',
        read: () => '{"a":1}',
      }),
      resource({
        uri: 'bytes://three',
        name: 'three',
        mimeType: 'application/octet-stream',
        read: () => new Uint8Array([1, 2, 255]),
      }),
      resource({
        uri: 'note://{name}',
        name: 'notes',
        read: ({ name }) => (name === 'gone' ? undefined : `This is ${name}.`),
        list: () => ['a', 'b', 'c'].map((name) => ({ uri: `note://${name}`, name })),
        complete: {
          name: (typed) => ['a', 'b', 'c', 'cc'].filter((name) => name.startsWith(typed)),
        },
      }),
    ],
    prompts: [
      prompt({
        name: 'greet',
        description: 'Greets.',
        arguments: {
          name: { description: 'Who' },
          tone: { required: false, values: ['warm', 'cool'] },
        },
        build: ({ name, tone = 'warm' }) => `Greet ${name}, ${tone}.`,
      }),
      ...['p1', 'p2', 'p3', 'p4', 'p5'].map((name) => prompt({ name, build: () => name })),
    ],
  })
  return server
}
