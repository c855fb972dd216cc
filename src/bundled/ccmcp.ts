import { type Server, type ServerOptions, createServer, tool } from '../index.js'
import { VERSION } from '../version.js'

const hello = tool({
  name: 'hello',
  description: 'Say hello to someone.',
  input: { type: 'object', properties: { name: { type: 'string', description: 'Name to greet' } }, required: ['name'] },
  run: ({ name }) => `Hello, ${name}!`,
})

const add = tool({
  name: 'add',
  description: 'Add two numbers.',
  input: {
    type: 'object',
    properties: { a: { type: 'number', description: 'The first number' }, b: { type: 'number', description: 'The second number' } },
    required: ['a', 'b'],
  },
  run: ({ a, b }) => String(a + b),
})

const echo = tool({
  name: 'echo',
  description: 'Return the message unchanged.',
  input: { type: 'object', properties: { message: { type: 'string', description: 'The message to return' } }, required: ['message'] },
  run: ({ message }) => message,
})

/** The ready-to-run server of `ccmcp serve`. */
export interface CcmcpOptions extends Pick<ServerOptions, 'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors' | 'logLevel'> {
  root?: string
  readOnly?: boolean
  persist?: string
  tools?: readonly string[]
  excludeTools?: readonly string[]
}

export function ccmcpServer({ root, readOnly, persist, tools, excludeTools, ...options }: CcmcpOptions = {}): Server {
  void [root, readOnly, persist]
  const wanted = ({ name }: { name: string }) => (tools?.includes(name) ?? true) && excludeTools?.includes(name) !== true
  return createServer({ ...options, name: 'ccmcp', version: VERSION, tools: [hello, add, echo].filter(wanted) })
}
