import { type Server, type ServerOptions, createServer, tool } from '../index.js'

const textTool = tool({
  name: 'word_count',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  run: ({ text }) => text,
})

export interface TextOptions extends Pick<ServerOptions, 'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'> {
  tools?: readonly string[]
  excludeTools?: readonly string[]
}

export function textServer({ tools, excludeTools, ...options }: TextOptions = {}): Server {
  const wanted = ({ name }: { name: string }) => (tools?.includes(name) ?? true) && excludeTools?.includes(name) !== true
  return createServer({
    invalidArguments: 'protocol',
    unexpectedErrors: 'protocol',
    ...options,
    name: 'demo-server',
    version: '0.1.0',
    tools: [textTool].filter(wanted),
  })
}
