import { type Server, type ServerOptions, createServer, tool } from '../index.js'

export type TextOptions = Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
>

const input = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
} as const

/** The server of `ccmcp serve text`: two small tools; failures are protocol errors. */
export function textServer(options: TextOptions = {}): Server {
  return createServer({
    invalidArguments: 'protocol',
    unexpectedErrors: 'protocol',
    ...options,
    name: 'demo-server',
    version: '0.1.0',
    tools: [
      tool({
        name: 'echo',
        description: 'Return the input string unchanged.',
        input,
        run: ({ text }) => text,
      }),
      tool({
        name: 'word_count',
        description: 'Count words in the input string.',
        input,
        run: ({ text }) => text.split(/\s+/u).filter((word) => word !== '').length,
      }),
    ],
  })
}
