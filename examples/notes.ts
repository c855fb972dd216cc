// A complete server in TypeScript: tools with zod schemas, a resource template,
// a prompt, completion, progress, elicitation and change notifications.
//
//   node examples/notes.ts                 on stdio, for a host (Node 22.18 or later runs TypeScript)
//   node examples/notes.ts --http 3000     over Streamable HTTP, at http://127.0.0.1:3000/mcp
//
// In your own project: npm install ccmcp zod
import { ToolError, createServer, form, prompt, resource, tool } from 'ccmcp'
import { listen } from 'ccmcp/http'
import { serveStdio } from 'ccmcp/stdio'
import { z } from 'zod'

interface Note {
  text: string
  tags: readonly string[]
}

const uriOf = (title: string) => `note://notes/${encodeURIComponent(title)}`

const notes = new Map<string, Note>([['Shopping', { text: 'Buy milk.', tags: ['home'] }]])
const titles = (typed: string) =>
  [...notes.keys()].filter((title) => title.toLowerCase().startsWith(typed.toLowerCase()))

const save = tool({
  name: 'save_note',
  description: 'Saves a note. Asks the user before it replaces one.',
  annotations: { destructiveHint: true, openWorldHint: false },
  input: z.object({
    title: z.string().min(1).max(80).describe('A short title'),
    text: z.string().describe('The note itself, as Markdown'),
    tags: z.array(z.string()).default([]),
  }),
  output: z.object({ uri: z.string(), replaced: z.boolean() }),
  async run({ title, text, tags }, call) {
    const replaced = notes.has(title)
    if (replaced) {
      const { answer } = await call.ask({
        answer: form({
          message: `Replace "${title}"?`,
          schema: z.object({ replace: z.boolean() }),
        }),
      })
      if (!answer.replace) throw new ToolError('The user wants to keep the old note.')
    }
    notes.set(title, { text, tags })
    if (replaced) server.updated(uriOf(title))
    else server.resources.changed()
    return { uri: uriOf(title), replaced }
  },
})

const search = tool({
  name: 'search_notes',
  description: 'Finds notes by words in their text.',
  annotations: { readOnlyHint: true },
  input: z.object({ words: z.string() }),
  timeout: 10_000,
  async run({ words }, call) {
    const found: string[] = []
    let done = 0
    for (const [title, { text }] of notes) {
      call.signal.throwIfAborted()
      if (text.toLowerCase().includes(words.toLowerCase())) found.push(title)
      call.progress(++done, notes.size)
      await Promise.resolve() // a real search would query a database here
    }
    if (found.length === 0)
      throw new ToolError(`No note has "${words}". There are: ${[...notes.keys()].join(', ')}.`)
    call.log.info({ words, found: found.length })
    return found.map((title) => ({
      type: 'resource_link' as const,
      uri: uriOf(title),
      name: title,
    }))
  },
})

const note = resource({
  uri: 'note://notes/{title}',
  name: 'note',
  mimeType: 'text/markdown',
  read: ({ title }) => notes.get(title)?.text, // undefined: resource not found
  list: () => [...notes.keys()].map((title) => ({ uri: uriOf(title), name: title })),
  complete: { title: titles },
})

const summarize = prompt({
  name: 'summarize',
  title: 'Summarize a note',
  arguments: {
    title: { description: 'Which note', complete: titles },
    length: { description: 'How long', required: false, values: ['one sentence', 'one paragraph'] },
  },
  build({ title, length = 'one sentence' }) {
    const text = notes.get(title)?.text
    if (text === undefined) throw new ToolError(`There is no note "${title}".`)
    return [
      { role: 'user', content: `Summarize this note in ${length}.` },
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri: uriOf(title), mimeType: 'text/markdown', text },
        },
      },
    ]
  },
})

const server = createServer({
  name: 'notes',
  version: '1.0.0',
  instructions: 'Search before you save: there may be a note already.',
  tools: [save, search],
  resources: [note],
  prompts: [summarize],
})

const [option, port = '3000'] = process.argv.slice(2)
if (option === '--http') {
  const { url } = await listen(server, { port: Number(port) })
  console.error(`Listening on ${url}`)
} else {
  await serveStdio(server)
}
