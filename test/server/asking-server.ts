import { type Server, createServer, form, roots, tool } from '../../src/index.js'

/** A server that asks its client, for the transcripts. */
export function askingServer(): Server {
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean', title: 'Sure?' } },
    required: ['ok'],
  } as const
  return createServer({
    name: 'asking',
    version: '1.0.0',
    tools: [
      tool({
        name: 'folders',
        run: async (_, call) =>
          (await call.ask({ folders: roots() })).folders.map(({ uri }) => uri).join(', '),
      }),
      tool({
        name: 'remove',
        input: { type: 'object', properties: { file: { type: 'string' } }, required: ['file'] },
        run: async ({ file }, call) => {
          const { sure } = await call.ask({ sure: form({ message: `Remove ${file}?`, schema }) })
          return sure.ok ? `Removed ${file}` : `Kept ${file}`
        },
      }),
    ],
  })
}
