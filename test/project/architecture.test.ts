import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CHUNKS, ENTRY_POINTS, MAY_IMPORT, MAY_USE_NODE } from '../../scripts/layers.mjs'

/* The layers of ARCHITECTURE.md (scripts/layers.mjs), compared with the imports of src. */

const src = fileURLToPath(new URL('../../src/', import.meta.url))
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => name.replaceAll('\\', '/'))
  .toSorted()

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
    // Components are in files of their own kind.
    return { from: file, to: files.includes(`${to}x`) ? `${to}x` : to }
  })
}

const imports = files.flatMap(importsOf)
const folderOf = (file: string) => file.split('/')[0] ?? ''

export function forbidden({ from, to }: Import): boolean {
  if (to.startsWith('node:')) return !MAY_USE_NODE.test(from)
  if (!from.includes('/') || folderOf(to) === folderOf(from)) return false
  const allowed = MAY_IMPORT[folderOf(from)] ?? []
  if (allowed === 'any') return false
  return !allowed.some((name) => to === name || to.startsWith(`${name}/`))
}

/** What is wrong with an import, and what to change. */
function advice({ from, to }: Import): string {
  return to.startsWith('node:')
    ? useOfNode(from)
    : `${from} imports ${to}: add it to "${folderOf(from)}" in MAY_IMPORT (scripts/layers.mjs) and to the table in ARCHITECTURE.md, or move the code`
}

const useOfNode = (file: string) =>
  `${file} uses Node: add it to MAY_USE_NODE in scripts/layers.mjs, or move that code`

describe('imports', () => {
  it('are found in the sources', () => {
    expect(imports.length).toBeGreaterThan(80)
    expect(imports).toContainEqual({ from: 'serving.ts', to: 'server/session.ts' })
    expect(imports).toContainEqual({ from: 'cli/main.ts', to: 'cli/demo.ts' })
  })
  it('are those that scripts/layers.mjs allows', () => {
    expect(imports.filter(forbidden).map(advice)).toEqual([])
  })
  it('that are not allowed would be reported', () => {
    const bad: Import[] = [
      { from: 'framing/lines.ts', to: 'jsonrpc/message.ts' },
      { from: 'jsonrpc/peer.ts', to: 'protocol/model.ts' },
      { from: 'server/session.ts', to: 'transports/memory.ts' },
      { from: 'server/session.ts', to: 'node:fs' },
      { from: 'transports/memory.ts', to: 'server/server.ts' },
      { from: 'bundled/ccmcp.ts', to: 'server/server.ts' },
      { from: 'schema/lint.ts', to: 'zod' },
      { from: 'unlisted/file.ts', to: 'jsonrpc/message.ts' },
    ]
    expect(bad.filter((each) => !forbidden(each))).toEqual([])
  })
  it('of the page do not lead to its server', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        /^workbench\/(?:page|model)\//.test(from) && to.startsWith('workbench/server/'),
    )
    expect(wrong).toEqual([])
  })
  it('are listed for every folder of src, and for no other', () => {
    const present = files.filter((file) => file.includes('/')).map(folderOf)
    expect(Object.keys(MAY_IMPORT).toSorted()).toEqual([...new Set(present)].toSorted())
  })
  it('lead to files that exist', () => {
    const missing = imports.filter(({ to }) => to.endsWith('.ts') && !files.includes(to))
    expect(missing).toEqual([])
  })
  it('have no cycle', () => {
    const edges = new Map<string, string[]>()
    // Type imports count too, though they are gone at run time.
    for (const { from, to } of imports) edges.set(from, [...(edges.get(from) ?? []), to])
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) {
        cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
        return
      }
      if (done.has(file)) return
      for (const next of edges.get(file) ?? []) visit(next, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(cycles).toEqual([])
  })
})

describe('Node', () => {
  /** Ways to Node's modules and globals other than an import. */
  const NODE = /\bgetBuiltinModule\b|\bprocess\s*(?:\?\.|\.|\[)|\brequire\(|\bcreateRequire\b/
  const usesNode = (code: string) =>
    NODE.test(code.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/\/\/.*/g, ''))

  it('is not used by files that run in any runtime', () => {
    const portable = files.filter((file) => !MAY_USE_NODE.test(file))
    expect(portable.length).toBeGreaterThan(100)
    const wrong = portable.filter((file) => usesNode(readFileSync(join(src, file), 'utf8')))
    expect(wrong.map(useOfNode)).toEqual([])
  })
  it.each([
    "globalThis.process?.getBuiltinModule?.('node:fs')",
    'process.nextTick(run)',
    "process['env']",
    "require('fs')",
  ])('would be noticed in %s', (code) => {
    expect(usesNode(code)).toBe(true)
  })
})

describe('the core bundle', () => {
  it('imports no module of Node', () => {
    const core = imports.filter(({ from, to }) => CHUNKS.core.test(from) && to.startsWith('node:'))
    const messages = core.map(
      ({ from, to }) =>
        `${from} is in the core bundle and imports ${to}: exclude it from CHUNKS.core in scripts/layers.mjs, or import ${to} when it is used`,
    )
    expect(messages).toEqual([])
  })
  it('has only the transport files that it names', () => {
    expect(CHUNKS.core.test('transports/streams.ts')).toBe(true)
    expect(CHUNKS.core.test('transports/new.ts')).toBe(false)
  })
})

describe('the entry points', () => {
  const json = (name: string) =>
    JSON.parse(readFileSync(join(src, '..', name), 'utf8')) as Record<string, unknown>

  it('are the exports of package.json, and the command line', () => {
    const exported = Object.keys(json('package.json')['exports'] as object) // by the format of package.json
      .filter((name) => name !== './package.json')
      .map((name) => (name === '.' ? 'index' : name.slice(2)))
    expect(
      ENTRY_POINTS.toSorted(),
      'ENTRY_POINTS (scripts/layers.mjs) and "exports" (package.json) differ',
    ).toEqual([...exported, 'cli'].toSorted())
  })
  it('are the entries of knip.json', () => {
    const [sources = ''] = json('knip.json')['entry'] as string[] // by the format of knip.json
    expect(sources, 'the first "entry" of knip.json lists ENTRY_POINTS (scripts/layers.mjs)').toBe(
      `src/{${ENTRY_POINTS.join(',')}}.ts`,
    )
  })
})

describe('the source files', () => {
  it('parse URLs with parseUrl of runtime.ts, not with URL.canParse', () => {
    const using = files.filter((file) =>
      /URL\.canParse\(/.test(readFileSync(join(src, file), 'utf8')),
    )
    expect(using).toEqual([])
  })

  it('name revision dates in protocol/revisions and capture/schemas only', () => {
    const dated = files
      .filter((file) => !/^(?:protocol\/revisions|capture\/schemas)\//.test(file))
      .filter((file) => {
        const code = readFileSync(join(src, file), 'utf8').replaceAll(/https:\/\/\S+/g, '') // links into the specification name its date
        return /20\d\d-\d\d-\d\d/.test(code)
      })
    expect(dated).toEqual([])
  })
  it('are not called utils, helpers or the like', () => {
    expect(
      files.filter((file) =>
        /(?:^|\/)(?:utils?|helpers?|common|manager|base|types)\.tsx?$/.test(file),
      ),
    ).toEqual([])
  })
  it('have at most 400 lines of code', () => {
    const isCode = (line: string) => !/^\s*(?:$|\/\/|\/\*|\*)/.test(line)
    const long = files.filter(
      (file) => readFileSync(join(src, file), 'utf8').split('\n').filter(isCode).length > 400,
    )
    expect(long).toEqual([])
  })
})
