import { type Server, createServer, prompt, resource, tool } from '../../src/index.js'

const icon = { src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48'] }

/** A server with every feature; its one tool sends log messages and changes the lists. */
export function featureServer(): Server {
  const server = createServer({
    name: 'features',
    version: '1.0.0',
    pageSize: 3,
    tools: [
      tool({
        name: 'talk',
        run(_, { log }) {
          log.debug('low')
          log.warning({ high: true }, 'talker')
          return 'said'
        },
      }),
      tool({
        name: 'change',
        run() {
          server.prompts.disable('plain')
          server.updated('config://app')
          return 'changed'
        },
      }),
    ],
    resources: [
      resource({
        uri: 'config://app',
        name: 'app',
        title: 'The app',
        description: 'Its settings.',
        mimeType: 'application/json',
        size: 7,
        annotations: { audience: ['user'], priority: 1, lastModified: '2025-01-12T15:00:58Z' },
        icons: [icon],
        meta: { 'example.com/a': 1 },
        read: () => '{"a":1}',
      }),
      resource({ uri: 'bytes://three', read: () => new Uint8Array([1, 2, 255]) }),
      resource({
        uri: 'note://{name}',
        title: 'Notes',
        icons: [icon],
        read: ({ name }) =>
          name === 'gone'
            ? undefined
            : { text: `This is ${name}.`, mimeType: 'text/plain', _meta: { 'example.com/b': 2 } },
        complete: { name: (typed) => ['milk', 'music'].filter((name) => name.startsWith(typed)) },
      }),
    ],
    prompts: [
      prompt({
        name: 'greet',
        title: 'Greet',
        description: 'Greets.',
        icons: [icon],
        arguments: {
          name: { title: 'Name', description: 'Who' },
          tone: { required: false, values: ['warm', 'cool'] },
        },
        build: ({ name, tone = 'warm' }) => [
          { role: 'user', content: `Greet ${name}, ${tone}.` },
          { role: 'assistant', content: { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' } },
          {
            role: 'user',
            content: { type: 'resource_link', uri: 'note://milk', name: 'milk', title: 'Milk' },
          },
        ],
      }),
      prompt({ name: 'plain', build: () => 'Plain.' }),
      prompt({ name: 'third', build: () => '3' }),
      prompt({ name: 'fourth', build: () => '4' }),
    ],
  })
  return server
}
