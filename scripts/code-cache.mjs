// Serves the client on stdin with dist/core.body.cjs, then writes down what V8
// has compiled of it: dist/core.cache. Run by accelerate.mjs.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

const folder = process.argv[2]
const filename = join(folder, 'core.body.cjs')
// V8 keeps the name in the cache and shows it in stacks: it must not be a path of the machine that builds.
const script = new Script(readFileSync(filename, 'latin1'), { filename: 'ccmcp/dist/core.body.cjs' })
const load = (name) => import(pathToFileURL(join(folder, name)).href)
const { createServer, serveStdio, tool } = script.runInThisContext()(pathToFileURL(filename).href, load)

const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
const echo = tool({ name: 'echo', description: 'Return the message.', input, run: ({ message }) => message })
await serveStdio(createServer({ name: 'first', version: '1.0.0', tools: [echo] }), { exit: false })
writeFileSync(join(folder, 'core.cache'), script.createCachedData())
