import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/* The house rules of ARCHITECTURE.md, read off the imports themselves. */

const src = fileURLToPath(new URL('../../src/', import.meta.url))
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'))
  .toSorted()

/** Folders, each with the folders (or modules) that it may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  framing: [],
  schema: [],
  jsonrpc: [],
  protocol: ['jsonrpc'],
  server: ['protocol', 'schema', 'jsonrpc'],
  client: ['protocol', 'schema', 'jsonrpc', 'version.ts'],
  transports: [
    'framing',
    'jsonrpc',
    'protocol/revisions',
    'protocol/errors.ts',
    'protocol/meta.ts',
    'stores',
    'auth',
  ],
  stores: [],
  auth: ['jsonrpc', 'jose'],
  http: ['auth', 'jsonrpc', 'schema', 'server', 'stores', 'transports'],
  bundled: ['index.ts', 'stdio.ts', 'version.ts'],
  harness: ['client', 'framing', 'jsonrpc', 'protocol', 'schema', 'server', 'transports'],
}
/** Where Node's own modules may be used. */
const MAY_USE_NODE =
  /^(?:transports\/(?:stdio-|http\/(?:client\/)?node)|stdio\.ts$|cli|harness\/|bundled\/)/

interface Import {
  from: string
  to: string
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), 'utf8')
  const found = [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s[^'";]*?from\s+'([^']+)'|(?:^|\n)import\s+'([^']+)'|import\('([^']+)'\)/g,
    ),
  ]
  return found.map((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? ''
    const to = name.startsWith('.')
      ? normalize(join(dirname(file), name))
          .replaceAll('\\', '/')
          .replace(/\.js$/, '.ts')
      : name
    return { from: file, to }
  })
}

const imports = files.flatMap(importsOf)
const folderOf = (file: string) => file.split('/')[0] ?? ''

export function forbidden({ from, to }: Import): boolean {
  if (to.startsWith('node:')) return !MAY_USE_NODE.test(from)
  const allowed = MAY_IMPORT[folderOf(from)]
  if (allowed === undefined || folderOf(to) === folderOf(from)) return false
  return !allowed.some((name) => to === name || to.startsWith(`${name}/`))
}

describe('imports', () => {
  it('are seen at all', () => {
    expect(imports.length).toBeGreaterThan(80)
    expect(imports).toContainEqual({ from: 'serving.ts', to: 'server/session.ts' })
    expect(imports).toContainEqual({ from: 'cli/main.ts', to: 'cli/demo.ts' })
  })
  it('obey the plan', () => {
    expect(imports.filter(forbidden).map(({ from, to }) => `${from} imports ${to}`)).toEqual([])
  })
  it('would be caught if they did not', () => {
    const bad: Import[] = [
      { from: 'framing/lines.ts', to: 'jsonrpc/message.ts' },
      { from: 'jsonrpc/peer.ts', to: 'protocol/model.ts' },
      { from: 'server/session.ts', to: 'transports/memory.ts' },
      { from: 'server/session.ts', to: 'node:fs' },
      { from: 'transports/memory.ts', to: 'server/server.ts' },
      { from: 'bundled/ccmcp.ts', to: 'server/server.ts' },
      { from: 'schema/lint.ts', to: 'zod' },
    ]
    expect(bad.filter((each) => !forbidden(each))).toEqual([])
  })
  it('exist', () => {
    const missing = imports.filter(({ to }) => to.endsWith('.ts') && !files.includes(to))
    expect(missing).toEqual([])
  })
  it('make no circle', () => {
    const edges = new Map<string, string[]>()
    // Types vanish at run time, but a circle of types is a muddle as well.
    for (const { from, to } of imports) edges.set(from, [...(edges.get(from) ?? []), to])
    const done = new Set<string>()
    const circles: string[] = []
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) {
        circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
        return
      }
      if (done.has(file)) return
      for (const next of edges.get(file) ?? []) visit(next, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(circles).toEqual([])
  })
})

describe('words', () => {
  it("keeps revisions' dates in protocol/revisions", () => {
    const dated = files
      .filter((file) => !file.startsWith('protocol/revisions/'))
      .filter((file) => {
        const code = readFileSync(join(src, file), 'utf8').replaceAll(/https:\/\/\S+/g, '') // links into the specification name its date
        return /20\d\d-\d\d-\d\d/.test(code)
      })
    expect(dated).toEqual([])
  })
  it('has no drawers', () => {
    expect(
      files.filter((file) =>
        /(?:^|\/)(?:utils?|helpers?|common|manager|base|types)\.ts$/.test(file),
      ),
    ).toEqual([])
  })
  it('has at most 400 lines of code in a file', () => {
    const isCode = (line: string) => !/^\s*(?:$|\/\/|\/\*|\*)/.test(line)
    const long = files.filter(
      (file) => readFileSync(join(src, file), 'utf8').split('\n').filter(isCode).length > 400,
    )
    expect(long).toEqual([])
  })
})
