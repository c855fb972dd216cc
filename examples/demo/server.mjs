import { createServer, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'
import { pack } from './photos.mjs'
const zip = tool({
  name: 'zip',
  input: { type: 'object', properties: { photos: { type: 'integer' } } },
  async run({ photos }, call) {
    for await (const n of pack(photos, call.signal)) call.progress(n, photos)
    return `${photos} saved`
  },
})
await serveStdio(createServer({ name: 'album', version: '1', tools: [zip] }))
