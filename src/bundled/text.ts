import { type Server, type ServerOptions, createServer, tool } from '../index.js'
import { READ_ONLY } from './hints.js'

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
        title: 'Echo',
        description: 'Return the input string unchanged.',
        input,
        annotations: READ_ONLY,
        run: ({ text }) => text,
      }),
      tool({
        name: 'word_count',
        title: 'Count words',
        description: 'Count words in the input string.',
        input,
        annotations: READ_ONLY,
        run: ({ text }) => text.split(/\s+/u).filter((word) => word !== '').length,
      }),
    ],
  })
}
