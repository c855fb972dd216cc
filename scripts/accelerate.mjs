// Makes a form of dist/core.js for Node that adds half as much to its start:
// the same code as a script, for which V8 can keep what it has compiled. Node
// has such caches for scripts, and not for modules in all the versions that we
// run on. A cache is good for one version of Node only, so it is no part of the
// package: the first server that has served a client writes it, beside the
// code, and later starts find it there. This build is such a first one.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

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
  writeFileSync(join(folder, 'core.node.js'), loader(code, names))
  // package.json says which of the two is meant.
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.js') || name.startsWith('core.')) continue
    const chunk = readFileSync(join(folder, name), 'utf8')
    writeFileSync(join(folder, name), chunk.replace(/(\bfrom|\bimport)\s*(["'`])\.\/core\.js\2/g, '$1"#core"'))
  }
  serveOnce(folder)
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
  // One byte a character, in the file and in memory.
  const ascii = script.replace(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return { code: ascii, names: pairs.map(([own, exported = own]) => exported) }
}

/**
 * V8 tells codes apart by their lengths alone; so the name of a cache has the
 * code's digest. One that V8 refuses (it is cut off, or Node was started with
 * other flags) stays, and the code is compiled as if there were none. V8 does
 * not see that a cache has holes, and crashes: so it gets its name when all of it
 * is on the disk, and a machine or a disk that fails meanwhile leaves none.
 */
function loader(code, names) {
  const digest = createHash('sha256').update(code).digest('hex').slice(0, 16)
  const literal = `'${code.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`
  const others = names.filter((name) => name !== 'serveStdio')
  return `// The package's core for Node (dist/core.js has the same code for others, with a source map): a script,
// for which V8 keeps what it has compiled in a file beside this one. NODE_DISABLE_COMPILE_CACHE=1 is obeyed.
const{readFileSync,renameSync,rmSync,writeFileSync}=process.getBuiltinModule("node:fs"),{Script}=process.getBuiltinModule("node:vm")
const{arch,env,platform,versions}=process
const cache=import.meta.dirname+"/core.${digest}."+versions.v8+"-"+platform+"-"+arch+".cache"
let cachedData
if(!env.NODE_DISABLE_COMPILE_CACHE)try{cachedData=readFileSync(cache)}catch{}
const script=new Script(${literal},{filename:"ccmcp/dist/core.js",cachedData})
const core=script.runInThisContext()(import.meta.url,name=>import(name))
function keep(){
  if(process.stdin.bytesRead===0)return
  const part=cache+"."+process.pid+".cache"
  try{
    writeFileSync(part,script.createCachedData(),{flag:"wx",flush:true})
    renameSync(part,cache)
  }catch{
    try{rmSync(part)}catch{}
  }
}
export const serveStdio=(...all)=>{
  if(cachedData===undefined&&!env.NODE_DISABLE_COMPILE_CACHE)process.once("exit",keep)
  return core.serveStdio(...all)
}
export const{${others.join(',')}}=core
`
}

/** Serves a first client, in a process that compiles nothing else. */
function serveOnce(folder) {
  const server = `
    import { createServer, serveStdio, tool } from ${JSON.stringify(pathToFileURL(join(folder, 'core.node.js')).href)}
    const input = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
    const echo = tool({ name: 'echo', description: 'Return the message.', input, run: ({ message }) => message })
    await serveStdio(createServer({ name: 'first', version: '1.0.0', tools: [echo] }))`
  const input = MESSAGES.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', server], { input })
  const answers = stdout.toString().split('\n').filter(Boolean).length
  if (status !== 0 || answers !== MESSAGES.length - 1) throw new Error(`The built core does not serve: ${stderr.toString()}`)
}
