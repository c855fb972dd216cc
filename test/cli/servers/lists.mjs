// A stateless server whose lists are as the argument says: full, partial, evil, failing, dying, endless, long, wide or
// noisy.
import { createInterface } from 'node:readline'

const kind = process.argv[2]
const EVIL = 'evil\u009b31m\u202e\u200f\u0007'
const page = (members) => ({
  result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...members },
})
const named = (name) => ({ name, inputSchema: { type: 'object' } })
const wide = (index) => {
  const properties = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`a${at}`, {}]))
  return { name: `tool${index}`, inputSchema: { type: 'object', properties } }
}
const down = { error: { code: -32603, message: 'database is down' } }
let pages = 0
const described = kind === 'full' || kind === 'partial'

function toolsList() {
  if (kind === 'endless') return page({ tools: [], nextCursor: String(++pages) })
  if (kind === 'long')
    return page({
      tools: [{ ...named('x'.repeat(1_000_000)), description: 'y'.repeat(1_000_000) }],
    })
  if (kind === 'wide')
    return page({ tools: Array.from({ length: 1000 }, (_, index) => wide(index)) })
  return page({ tools: [kind === 'evil' ? { ...named(EVIL), description: EVIL } : named('t')] })
}

function outcomeOf(method) {
  switch (method) {
    case 'server/discover':
      return page({
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {}, resources: {}, prompts: {} },
        ...(described && {
          instructions: 'Ask me.',
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'lists', version: '1' } },
        }),
      })
    case 'tools/list':
      return toolsList()
    case 'tools/call':
      return { error: { code: -32602, message: EVIL, data: EVIL } }
    case 'prompts/list':
      return page({ prompts: [{ name: 'p' }] })
    case 'resources/list':
      if (kind === 'dying') process.exit(7)
      if (described) return page({ resources: [{ uri: 'a://b', name: 'r' }] })
      return kind === 'failing' ? down : page({ resources: [] })
    case 'resources/templates/list':
      if (kind === 'partial') return { error: { ...down.error, data: { retry: 5 } } }
      if (kind === 'full')
        return page({ resourceTemplates: [{ uriTemplate: 'a://{b}', name: 'a' }] })
      return kind === 'failing' ? down : page({ resourceTemplates: [] })
    default:
      return { error: { code: -32601, message: `Method not found: ${method}` } }
  }
}

if (kind === 'noisy') {
  console.log('Listening on stdio')
  console.log('{"level":"info"}')
  for (let i = 0; i < 20; i++) console.log(`line ${i}`)
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...outcomeOf(method) }))
})
