// A server with every kind of definition, from the built package. Its tools trigger changes.
import { createServer, prompt, resource, tool } from '../../dist/index.js'
import { serveStdio } from '../../dist/stdio.js'

const server = createServer({
  name: 'features',
  version: '1.0.0',
  tools: [
    tool({
      name: 'change',
      description: 'Change the lists and a resource.',
      run(_, { log }) {
        log.warning('changing', 'interop')
        server.tools.add(tool({ name: `added_${server.tools.size}`, run: () => 'new' }))
        server.updated('config://app')
        return 'changed'
      },
    }),
  ],
  resources: [
    resource({
      uri: 'config://app',
      name: 'app',
      mimeType: 'application/json',
      read: () => '{"a":1}',
    }),
    resource({
      uri: 'file:///{+path}',
      name: 'file',
      read: ({ path }) => path,
      complete: { path: () => ['a', 'b'] },
    }),
  ],
  prompts: [
    prompt({ name: 'greet', arguments: { name: {} }, build: ({ name }) => `Greet ${name}.` }),
  ],
})

await serveStdio(server)
