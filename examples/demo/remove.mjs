import { createServer, form, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'

const schema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] }

const remove = tool({
  name: 'remove',
  async run(_, call) {
    const { ok } = await call.ask({ ok: form({ message: 'Really?', schema }) })
    return ok.sure ? 'Removed 12 photos.' : 'Nothing was removed.'
  },
})

await serveStdio(createServer({ name: 'album', version: '1', tools: [remove] }))
