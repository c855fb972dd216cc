// Makes a form of dist/core.js for Node that adds half as much to its start:
// the same code as a script, with a cache of what V8 compiled of it when it
// served a first client. Node has such caches for scripts, and not yet for
// modules in all the versions that we run on. A cache that another Node has
// made is refused by V8; then the script is compiled like any other.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What stack traces say. The cache holds it: it must be nobody's path. */
const FILENAME = 'ccmcp/dist/core.body.cjs'

/** What the first clients of most servers send. */
const described = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
const MESSAGES = [
  { id: 0, method: 'server/discover', params: { _meta: described } },
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'client', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/list' },
  { id: 3, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } },
  { id: 4, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' }, _meta: described } },
]

export function accelerate(folder, core) {
  const { code, names } = asFunction(readFileSync(core, 'utf8'))
  writeFileSync(join(folder, 'core.body.cjs'), code)
  writeFileSync(join(folder, 'core.node.js'), stub(names))
  // package.json says which of the two is meant.
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.js') || name.startsWith('core.')) continue
    const chunk = readFileSync(join(folder, name), 'utf8')
    writeFileSync(join(folder, name), chunk.replace(/(\bfrom|\bimport)\s*(["'`])\.\/core\.js\2/g, '$1"#core"'))
  }
  makeCache(folder)
}

/** The module as the text of a function of its address and of how it loads more; it returns what was exported. */
function asFunction(module) {
  const [all, list] = /export\s*\{([^}]*)\};?\s*(?:\/\/#[^\n]*)?\s*$/.exec(module) ?? []
  if (all === undefined) throw new Error('The core does not end with its exports')
  const body = module.slice(0, -all.length)
  if (/^\s*import\s*[\w{*"'`]/m.test(body)) throw new Error('The core imports another module; it must be one file')
  const pairs = list.split(',').map((each) => each.trim().split(/\s+as\s+/))
  const returned = pairs.map(([own, exported = own]) => `${exported}:${own}`).join(',')
  const code = body.replace(/\bimport\((?=[`'"]\.\/)/g, 'load(').replaceAll('import.meta.url', 'url')
  const script = `(function(url,load){"use strict";${code};return{${returned}}})`
  // One byte a character: it is read without being decoded.
  const ascii = script.replace(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return { code: ascii, names: pairs.map(([own, exported = own]) => exported) }
}

function stub(names) {
  return `// The package's core for Node: core.body.cjs, with what V8 has compiled of it before.
const{readFileSync}=process.getBuiltinModule("node:fs"),{Script}=process.getBuiltinModule("node:vm")
let cachedData
try{cachedData=readFileSync(import.meta.dirname+"/core.cache")}catch{}
const script=new Script(readFileSync(import.meta.dirname+"/core.body.cjs","latin1"),{filename:"${FILENAME}",cachedData})
export const{${names.join(',')}}=script.runInThisContext()(import.meta.url,name=>import(name))
`
}

/** In a process of its own, which has compiled nothing else. */
function makeCache(folder) {
  const input = MESSAGES.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')
  const maker = fileURLToPath(new URL('code-cache.mjs', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [maker, folder, FILENAME], { input })
  const answers = stdout.toString().split('\n').filter(Boolean).length
  if (status !== 0 || answers !== MESSAGES.length - 1) throw new Error(`The code cache could not be made: ${stderr.toString()}`)
}
