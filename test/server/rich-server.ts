import { type Server, ToolError, createServer, result, tool } from '../../src/index.js'

const icon = { src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48'] }
const annotations = {
  audience: ['user' as const],
  priority: 0.5,
  lastModified: '2025-01-12T15:00:58Z',
}

/** A server that uses every field of tools, so that the projection of each revision is visible. */
export function richServer(): Server {
  return createServer({
    name: 'rich',
    version: '1.2.3',
    title: 'The rich server',
    description: 'Says everything.',
    websiteUrl: 'https://example.com',
    icons: [icon],
    instructions: 'Ask for everything.',
    tools: [
      tool({
        name: 'everything',
        title: 'Everything',
        description: 'Every kind of content.',
        annotations: { title: 'All', readOnlyHint: true },
        icons: [icon],
        meta: { 'example.com/a': 1 },
        output: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
        run: () =>
          result({
            value: { n: 1 },
            content: [
              { type: 'text', text: 'text', annotations, _meta: { 'example.com/b': 2 } },
              { type: 'image', data: 'AAAA', mimeType: 'image/png', annotations },
              { type: 'audio', data: 'AAAAAAAA', mimeType: 'audio/wav' },
              {
                type: 'resource_link',
                uri: 'file:///a.txt',
                name: 'a.txt',
                title: 'A',
                description: 'The file',
                icons: [icon],
                size: 3,
              },
              {
                type: 'resource',
                resource: {
                  uri: 'file:///b.txt',
                  text: 'b',
                  mimeType: 'text/plain',
                  _meta: { 'example.com/c': 3 },
                },
                annotations,
              },
            ],
            meta: { 'example.com/d': 4 },
          }),
      }),
      tool({
        name: 'list',
        output: { type: 'array', items: { type: 'number' } },
        run: () => [1, 2],
      }),
      tool({
        name: 'fail',
        run: () => {
          throw new ToolError('It did not work.')
        },
      }),
    ],
  })
}
