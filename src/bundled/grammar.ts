import { type Server, type ServerOptions, createServer, tool } from '../index.js'

const verbTool = tool({
  name: 'conjugate',
  input: { type: 'object', properties: { verb: { type: 'string' } }, required: ['verb'] },
  run: ({ verb }) => verb,
})

export interface GrammarOptions extends Pick<ServerOptions, 'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'> {
  tools?: readonly string[]
  excludeTools?: readonly string[]
}

export function grammarServer({ tools, excludeTools, ...options }: GrammarOptions = {}): Server {
  const wanted = ({ name }: { name: string }) => (tools?.includes(name) ?? true) && excludeTools?.includes(name) !== true
  return createServer({
    invalidArguments: 'protocol',
    unexpectedErrors: 'protocol',
    ...options,
    name: 'minimcp-grammar',
    version: '0.1.0',
    tools: [verbTool].filter(wanted),
  })
}
