import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { fc } from '../fast-check.js'
import { ccmcpServer } from '../../src/bundled/ccmcp.js'
import { ToolFile, type ToolFileOptions } from '../../src/bundled/tool-file.js'
import { connect, memory } from '../../src/client.js'
import { parametersOf, render } from '../../src/bundled/template.js'
import type { Server } from '../../src/index.js'
import { answers, call, initialize } from '../drive.js'
import { CCMCP, Child } from '../stdio/child.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
const greet = {
  name: 'greet_formal',
  description: 'Formal greeting',
  template: 'Dear {name}, it is a pleasure to meet you.',
}
const list = (id: unknown = 'list') => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })

interface Message {
  id?: unknown
  method?: string
  result?: {
    content: { text: string }[]
    isError: boolean
    tools: { name: string; inputSchema: object }[]
  }
}
async function all(server: Server, lines: readonly string[]): Promise<Message[]> {
  return (await answers(server, [...initialize('2025-11-25'), ...lines])) as Message[]
}
/** The texts of the results of tool calls; errors are marked. */
async function texts(server: Server, lines: readonly string[]): Promise<string[]> {
  return (await all(server, lines))
    .filter(({ result }) => result?.content !== undefined)
    .map(({ result }) => `${result?.isError === true ? 'ERROR ' : ''}${result?.content[0]?.text}`)
}
async function names(server: Server): Promise<string[]> {
  const found = (await all(server, [list()])).find(({ id }) => id === 'list')
  return found?.result?.tools.map(({ name }) => name) ?? []
}
const fresh = () => ccmcpServer({ roots: [folder] })
/** No time passes for locks until the end of the test. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('register_tool', () => {
  it('adds a tool that can be listed and called immediately', async () => {
    const server = fresh()
    expect(
      await texts(server, [
        call('register_tool', greet, 1),
        call('greet_formal', { name: 'Professor Smith' }, 2),
      ]),
    ).toEqual([
      'Registered tool greet_formal (arguments: name)',
      'Dear Professor Smith, it is a pleasure to meet you.',
    ])
    const found = (await all(server, [list()])).find(({ id }) => id === 'list')
    expect(found?.result?.tools.at(-1)).toEqual({
      name: 'greet_formal',
      description: 'Formal greeting',
      inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
    })
  })
  it('and unregister_tool send notifications/tools/list_changed', async () => {
    const found = await all(fresh(), [
      call('register_tool', greet, 1),
      call('unregister_tool', { name: 'greet_formal' }, 2),
    ])
    expect(
      found.filter(({ method }) => method === 'notifications/tools/list_changed').length,
    ).toBeGreaterThan(0)
    const apart = fresh()
    const told = async (line: string) =>
      (await all(apart, [line])).filter(
        ({ method }) => method === 'notifications/tools/list_changed',
      ).length
    expect(await told(call('register_tool', greet))).toBe(1)
    expect(await told(call('unregister_tool', { name: 'greet_formal' }))).toBe(1)
  })
  it('makes every placeholder a required string', async () => {
    const server = fresh()
    const two = { name: 'two', description: 'd', template: '{a} and {b} and {a}' }
    expect(
      await texts(server, [
        call('register_tool', two, 1),
        call('two', { a: 'x', b: 'y' }, 2),
        call('two', { a: 'x' }, 3),
        call('two', { a: 1, b: 'y' }, 4),
      ]),
    ).toEqual([
      'Registered tool two (arguments: a, b)',
      'x and y and x',
      'ERROR Invalid arguments for two: b is required',
      'ERROR Invalid arguments for two: a must be a string, not 1',
    ])
  })
  it('accepts placeholders named like properties of Object.prototype', async () => {
    const odd = { name: 'odd', description: 'd', template: '{__proto__} {constructor} {toString}' }
    const input = JSON.parse('{"__proto__":"p","constructor":"c","toString":"t"}') as object
    expect(
      await texts(fresh(), [
        call('register_tool', odd, 1),
        call('odd', input, 2),
        call('odd', {}, 3),
      ]),
    ).toEqual([
      expect.stringContaining('Registered'),
      'p c t',
      'ERROR Invalid arguments for odd: __proto__ is required; constructor is required; toString is required',
    ])
  })

  const BAD: readonly [string, object, string][] = [
    [
      'a built-in name',
      { ...greet, name: 'hello' },
      'The tool hello is built in and cannot be replaced',
    ],
    [
      'itself',
      { ...greet, name: 'register_tool' },
      'The tool register_tool is built in and cannot be replaced',
    ],
    ['an empty name', { ...greet, name: '' }, 'The name "" is not allowed'],
    ['a name with a space', { ...greet, name: 'a b' }, 'The name "a b" is not allowed'],
    ['a long name', { ...greet, name: 'a'.repeat(65) }, 'is not allowed: use 1 to 64'],
    ['an empty description', { ...greet, description: '' }, 'The description is empty'],
    [
      'a long description',
      { ...greet, description: 'x'.repeat(1001) },
      'The description has 1001 characters; at most 1000 are allowed',
    ],
    ['an empty template', { ...greet, template: '' }, 'The template is empty'],
    [
      'a long template',
      { ...greet, template: 'x'.repeat(10_001) },
      'The template has 10001 characters; at most 10000 are allowed',
    ],
    [
      'many placeholders',
      { ...greet, template: Array.from({ length: 21 }, (_, i) => `{a${i}}`).join('') },
      'The template has 21 placeholders; at most 20 are allowed',
    ],
    [
      'hidden text',
      { ...greet, description: 'nice\u{e0041}' },
      'The description contains control or invisible characters',
    ],
    [
      'an escape sequence',
      { ...greet, template: '\u001b[2J' },
      'The template contains control or invisible characters',
    ],
  ]
  it.each(BAD)('rejects %s', async (_, input, message) => {
    const server = fresh()
    const [text] = await texts(server, [call('register_tool', input)])
    expect(text).toContain(`ERROR `)
    expect(text).toContain(message)
    expect(await names(server)).toHaveLength(8)
  })
  it('rejects a duplicate name and more than 100 tools', async () => {
    const server = fresh()
    expect(
      await texts(server, [call('register_tool', greet, 1), call('register_tool', greet, 2)]),
    ).toEqual([
      expect.stringContaining('Registered'),
      'ERROR The tool greet_formal is already registered; unregister it first to replace it',
    ])
    const lines = Array.from({ length: 100 }, (_, i) =>
      call('register_tool', { ...greet, name: `t${i}` }, i),
    )
    expect((await texts(server, lines)).at(-1)).toBe(
      'ERROR The limit of 100 registered tools is reached; unregister one first',
    )
    expect(await names(server)).toHaveLength(108)
  })
  it('limits the length of the rendered text', async () => {
    const many = { name: 'many', description: 'd', template: '{a}'.repeat(3000) }
    expect(
      await texts(fresh(), [
        call('register_tool', many, 1),
        call('many', { a: 'x'.repeat(1000) }, 2),
      ]),
    ).toEqual([
      expect.stringContaining('Registered'),
      'ERROR The text would have 3000000 characters; the limit is 1048576',
    ])
  })
})

describe('unregister_tool', () => {
  it('removes a registered tool', async () => {
    const server = fresh()
    expect(
      await texts(server, [
        call('register_tool', greet, 1),
        call('unregister_tool', { name: 'greet_formal' }, 2),
      ]),
    ).toEqual([expect.stringContaining('Registered'), 'Unregistered tool greet_formal'])
    expect(await names(server)).not.toContain('greet_formal')
  })
  it('rejects unknown and built-in tools', async () => {
    expect(
      await texts(fresh(), [
        call('unregister_tool', { name: 'hello' }, 1),
        call('unregister_tool', { name: 'nope' }, 2),
      ]),
    ).toEqual([
      'ERROR The tool hello is built in and cannot be removed',
      'ERROR There is no registered tool "nope"',
    ])
  })
  it('neither removes nor replaces an excluded built-in tool', async () => {
    const server = ccmcpServer({ roots: [folder], excludeTools: ['hello'] })
    expect(
      await texts(server, [
        call('unregister_tool', { name: 'hello' }, 1),
        call('register_tool', { ...greet, name: 'hello' }, 2),
      ]),
    ).toEqual([
      'ERROR The tool hello is built in and cannot be removed',
      'ERROR The tool hello is built in and cannot be replaced',
    ])
  })
})

describe('a template', () => {
  it('does not expand placeholders in values', () => {
    expect(render('{a}{b}', { a: '{b}', b: '{a}' })).toBe('{b}{a}')
    expect(render('{a}', { a: '$& $1 $$ \\' })).toBe('$& $1 $$ \\')
    expect(render('{not a placeholder} {} {1} {{a}}', { a: 'x' })).toBe(
      '{not a placeholder} {} {1} {x}',
    )
  })
  it('contains its literal text and every value (property)', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const piece = fc.oneof(
      fc.string({ unit: 'binary-ascii' }).map((text) => text.replaceAll(/[{}]/g, '')),
      name.map((each) => `{${each}}`),
    )
    fc.assert(
      fc.property(fc.array(piece), fc.string(), fc.string(), fc.string(), (pieces, a, b, c) => {
        const values: Record<string, string> = { a, b, c }
        const expected = pieces
          .map((each) => (/^\{[abc]\}$/.test(each) ? values[each[1] ?? ''] : each))
          .join('')
        expect(render(pieces.join(''), values)).toBe(expected)
        expect(parametersOf(pieces.join('')).every((each) => each in values)).toBe(true)
      }),
    )
  })
})

describe('persist', () => {
  let count = 0
  const newFile = () => join(folder, `tools-${++count}.json`)
  const open = (file: string, warnings: string[] = []) =>
    ccmcpServer({
      roots: [folder],
      toolFile: new ToolFile(file, { warn: (message) => void warnings.push(message) }),
    })
  const aside = (file: string) =>
    readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}.damaged-`))

  it('saves tools across restarts in a versioned file', async () => {
    const file = newFile()
    await texts(open(file), [
      call('register_tool', greet, 1),
      call('register_tool', { ...greet, name: 'second' }, 2),
    ])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      version: 1,
      tools: [greet, { ...greet, name: 'second' }],
    })
    expect(
      await texts(open(file), [
        call('greet_formal', { name: 'A' }, 1),
        call('unregister_tool', { name: 'second' }, 2),
      ]),
    ).toEqual(['Dear A, it is a pleasure to meet you.', 'Unregistered tool second'])
    expect((await names(open(file))).slice(8)).toEqual(['greet_formal'])
  })
  it('writes no file before the first change', () => {
    const file = newFile()
    open(file)
    expect(readdirSync(folder)).not.toContain(basename(file))
  })

  const valid = JSON.stringify({ version: 1, tools: [greet] })
  const DAMAGED: readonly [string, string][] = [
    ['half a file', valid.slice(0, 40)],
    ['an empty file', ''],
    ['another kind of file', '[1,2,3]'],
    ['null', 'null'],
    ['a version of the future', JSON.stringify({ version: 2, tools: [greet] })],
    ['no list', JSON.stringify({ version: 1, tools: {} })],
    ['NUL bytes, as after a power cut', '\0'.repeat(200)],
  ]
  it.each(DAMAGED)('backs up %s, warns, and continues', async (_, content) => {
    const file = newFile()
    writeFileSync(file, content)
    const warnings: string[] = []
    const server = open(file, warnings)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('could not all be read')
    // Another process may be using the file: it is not changed before the first change.
    expect([readFileSync(file, 'utf8'), aside(file)]).toEqual([content, []])
    await texts(server, [call('register_tool', greet)])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ version: 1, tools: [greet] })
    expect(aside(file).map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual([content])
    expect(warnings[1]).toContain(aside(file)[0])
    await texts(server, [call('unregister_tool', { name: greet.name })])
    expect(aside(file)).toHaveLength(1)
  })
  it('keeps the valid tools of a file with an invalid one', async () => {
    const file = newFile()
    writeFileSync(
      file,
      JSON.stringify({
        version: 1,
        tools: [greet, { ...greet, name: 'hello' }, { name: 5 }, null, greet],
      }),
    )
    const warnings: string[] = []
    const server = open(file, warnings)
    expect((await names(server)).slice(8)).toEqual(['greet_formal'])
    expect(warnings).toHaveLength(1)
    await texts(server, [call('register_tool', { ...greet, name: 'second' })])
    expect(aside(file)).toHaveLength(1)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      version: 1,
      tools: [greet, { ...greet, name: 'second' }],
    })
  })
  it('saves at most 100 tools', async () => {
    const file = newFile()
    writeFileSync(
      file,
      JSON.stringify({
        version: 1,
        tools: Array.from({ length: 101 }, (_, i) => ({ ...greet, name: `t${i}` })),
      }),
    )
    const warnings: string[] = []
    expect(await names(open(file, warnings))).toHaveLength(108)
    expect(warnings[0]).toContain('the file has more than 100 tools')
  })
  it('does not undo the change of another process', async () => {
    const file = newFile()
    const [one, other] = [open(file), open(file)]
    await texts(one, [call('register_tool', { ...greet, name: 'one' })])
    await texts(other, [call('register_tool', { ...greet, name: 'other' })])
    expect((await names(open(file))).slice(8)).toEqual(['one', 'other'])
  })
  it('loses no change of concurrent processes', async () => {
    const file = newFile()
    const children = ['a', 'b', 'c'].map((letter) => {
      const child = new Child(CCMCP, ['--persist', file])
      const lines = Array.from({ length: 12 }, (_, i) =>
        call('register_tool', { ...greet, name: `${letter}${i}` }, i + 1),
      )
      child.write([...initialize('2025-11-25'), ...lines].map((line) => `${line}\n`).join(''))
      child.end()
      return child
    })
    await Promise.all(children.map((child) => child.closed()))
    const told = children.flatMap(({ stdout }) =>
      [...stdout.toString().matchAll(/"Registered tool (\w+)/g)].map(([, name = '']) => name),
    )
    const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name).toSorted()).toEqual(told.toSorted())
    expect(told.length).toBeGreaterThan(12)
    expect(readdirSync(folder)).not.toContain(`${basename(file)}.lock`)
  })
  it('waits for the lock of another process without blocking other calls', async () => {
    const file = newFile()
    stopClock() // otherwise the lock would be removed as stale
    const lock = `${file}.lock`
    writeFileSync(lock, '')
    const client = await connect(memory(open(file)))
    const registered = client.callTool('register_tool', greet)
    // A pipelined call of the new tool is served in order.
    const used = client.callTool('greet_formal', { name: 'A' })
    for (let a = 0; a < 20; a++)
      expect(await client.callTool('add', { a, b: 1 })).toMatchObject({
        content: [{ text: String(a + 1) }],
      })
    expect(existsSync(lock)).toBe(true)
    rmSync(lock)
    expect(await registered).toMatchObject({ isError: false })
    expect(await used).toMatchObject({
      content: [{ text: 'Dear A, it is a pleasure to meet you.' }],
    })
    await client.close()
  })
  it('stops waiting for the lock when the call is cancelled', async () => {
    const file = newFile()
    stopClock() // otherwise the lock would be removed as stale
    writeFileSync(`${file}.lock`, '')
    const server = open(file)
    const client = await connect(memory(server))
    const cancelled = new AbortController()
    const registered = client.callTool('register_tool', greet, { signal: cancelled.signal })
    await client.callTool('add', { a: 1, b: 1 })
    cancelled.abort()
    await expect(registered).rejects.toThrow()
    // When this has its response, the cancellation has been received.
    await client.callTool('add', { a: 1, b: 1 })
    rmSync(`${file}.lock`)
    expect(await client.callTool('register_tool', { ...greet, name: 'second' })).toMatchObject({
      isError: false,
    })
    expect((await names(server)).slice(8)).toEqual(['second'])
    await client.close()
  })

  describe('its lock', () => {
    const update = (file: ToolFile, names: readonly string[], since = performance.now()) =>
      file.update({
        change: (kept) => [...kept, ...names.map((name) => ({ ...greet, name }))],
        ifDamaged: () => [],
        check: () => {},
        requestedAt: since,
      })
    const kept = (file: ToolFile) => file.load(() => {}).map(({ name }) => name)
    const fileWith = (options: Partial<ToolFileOptions>, path = newFile()) =>
      new ToolFile(path, { warn: () => {}, ...options })
    const leftovers = (file: ToolFile) =>
      readdirSync(folder).filter((name) => name.startsWith(`${basename(file.path)}.`))

    it('fails with an explanation on timeout, without a change', async () => {
      const file = fileWith({ lockTimeout: 30, stale: 60_000 })
      writeFileSync(`${file.path}.lock`, '')
      await expect(update(file, ['a'])).rejects.toThrow(
        'nothing was changed: another process holds its lock; try again',
      )
      expect(kept(file)).toEqual([])
      expect(existsSync(`${file.path}.lock`)).toBe(true)
      // A change that was requested long ago does not wait again.
      await expect(
        update(fileWith({ lockTimeout: 60_000 }, file.path), ['a'], performance.now() - 60_001),
      ).rejects.toThrow('holds its lock')
    })
    it('of a killed process is removed when stale, by one of several processes', async () => {
      const file = fileWith({ stale: 500 })
      writeFileSync(`${file.path}.lock`, '{"version":1,"tools":[')
      const names = ['a', 'b', 'c', 'd', 'e', 'f']
      await Promise.all(names.map((name) => update(fileWith({ stale: 500 }, file.path), [name])))
      expect(kept(file).toSorted()).toEqual(names)
      expect(leftovers(file)).toEqual([])
    })
    it('is not removed while its process is active', async () => {
      const file = fileWith({ lockTimeout: 100, stale: 40 })
      const lock = `${file.path}.lock`
      writeFileSync(lock, '')
      const working = setInterval(() => writeFileSync(lock, String(performance.now())), 5)
      await expect(update(file, ['a'])).rejects.toThrow('another process holds its lock')
      clearInterval(working)
    })
    it('that was taken over is waited for again, and the file stays intact', async () => {
      const file = fileWith({ lockTimeout: 200, stale: 60_000 })
      await update(file, ['first'])
      const lock = `${file.path}.lock`
      const late = file.update({
        change: (tools) => {
          rmSync(lock)
          writeFileSync(lock, 'of another process')
          return [...tools, { ...greet, name: 'late' }]
        },
        ifDamaged: () => [],
        check: () => {},
        requestedAt: performance.now(),
      })
      // If the time is over before it waits, it says so.
      await expect(late).rejects.toThrow(
        /another process (?:holds|has taken over) its lock; try again/,
      )
      expect(kept(file)).toEqual(['first'])
      expect(readFileSync(lock, 'utf8')).toBe('of another process')
    })
    it('must be a regular file', async () => {
      const file = fileWith({})
      mkdirSync(`${file.path}.lock`)
      await expect(update(file, ['a'])).rejects.toThrow(
        'the path of its lock file is not a regular file',
      )
    })
  })
  it('is protected from the file tools, and so is its lock', async () => {
    const file = newFile()
    const server = open(file)
    await texts(server, [call('register_tool', greet)])
    const before = readdirSync(folder)
    const name = basename(file)
    const found = await texts(server, [
      call('write_file', { path: `${name}.lock`, content: '' }, 1),
      call('write_file', { path: file, content: '{}' }, 2),
      call('read_file', { path: name.toUpperCase() }, 3),
    ])
    expect(found).toHaveLength(3)
    for (const text of found)
      expect(text).toMatch(/^ERROR ".*" belongs to the server itself; use another file$/)
    expect(readdirSync(folder)).toEqual(before)
    expect(await texts(server, [call('register_tool', { ...greet, name: 'second' })])).toEqual([
      expect.stringContaining('Registered'),
    ])
  })
  it('loses no confirmed change when processes are killed', async () => {
    const file = newFile()
    const told = new Set<string>()
    for (let round = 0; round < 3; round++) {
      const child = new Child(CCMCP, ['--persist', file])
      const lines = Array.from({ length: 20 }, (_, i) =>
        call('register_tool', { ...greet, name: `r${round}-${i}` }, i + 1),
      )
      child.write([...initialize('2025-11-25'), ...lines].map((line) => `${line}\n`).join(''))
      await child.until(
        () => child.stdout.toString().split('"Registered tool').length > 3 + 2 * round,
        'some answers',
      )
      await child.kill()
      for (const [, name = ''] of child.stdout.toString().matchAll(/"Registered tool ([\w-]+)/g))
        told.add(name)
    }
    const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining([...told]))
    expect(told.size).toBeGreaterThan(8)
  })
  it.runIf(process.platform === 'linux')(
    'does not block on a pipe in place of the file',
    async () => {
      const file = newFile()
      const server = open(file)
      await texts(server, [call('register_tool', greet)])
      rmSync(file)
      execFileSync('mkfifo', [file])
      expect(await texts(server, [call('register_tool', { ...greet, name: 'second' })])).toEqual([
        'ERROR The change could not be saved (not a regular file); nothing was changed',
      ])
    },
  )
  it.runIf(process.getuid?.() !== 0)('registers nothing that cannot be saved', async () => {
    const file = newFile()
    const server = open(file)
    chmodSync(folder, 0o500)
    try {
      expect(await texts(server, [call('register_tool', greet)])).toEqual([
        'ERROR The change could not be saved (EACCES); nothing was changed',
      ])
    } finally {
      chmodSync(folder, 0o700)
    }
    expect(await names(server)).toHaveLength(8)
  })
})
