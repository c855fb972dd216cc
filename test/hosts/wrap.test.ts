import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { type Plan, applyPlan, planChange } from '../../src/hosts/change.js'
import { HOST_NAMES, placesOf } from '../../src/hosts/hosts.js'

/* Configurations of every host, wrapped and unwrapped. */

const WORDS = ['/usr/bin/node', '/opt/ccmcp/dist/cli.js', 'tap', '--']
const configs = fileURLToPath(new URL('configs/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-hosts-'))
const records = join(folder, 'records')
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeEach(() => rmSync(records, { recursive: true, force: true }))

const originals = readdirSync(configs).filter((name) => !name.includes('.wrapped.'))
const hostOf = (name: string) => name.split('.')[0] ?? ''
const project = '/home/ann/shop'

/** The place in which the host looks, but for a file of the test. */
const placeOf = (host: string, path: string) => ({
  path,
  tables: (placesOf(host, { project, home: '/home/ann', environment: {} }) ?? []).flatMap(
    ({ tables }) => tables,
  ),
})

async function change(
  action: 'wrap' | 'unwrap',
  host: string,
  path: string,
  names?: string[],
): Promise<Plan> {
  const plan = await planChange(placeOf(host, path), {
    action,
    words: WORDS,
    names: names === undefined ? undefined : new Set(names),
    records,
  })
  if (plan === undefined) throw new Error('There is no file')
  await applyPlan(plan)
  return plan
}

function copyOf(name: string): string {
  const path = join(folder, name)
  writeFileSync(path, readFileSync(configs + name))
  return path
}
const read = (path: string) => readFileSync(path, 'utf8')

it('there is a configuration of every host', () => {
  expect(originals.map(hostOf).toSorted()).toEqual(HOST_NAMES.toSorted())
})

describe.each(originals)('%s', (name) => {
  const host = hostOf(name)
  const before = read(configs + name)

  it('is wrapped as its golden file shows', async () => {
    const path = copyOf(name)
    const { changed } = await change('wrap', host, path)
    expect(changed.length).toBeGreaterThan(0)
    await expect(read(path)).toMatchFileSnapshot(configs + name.replace('.', '.wrapped.'))
  })

  it('is the same after wrapping and unwrapping', async () => {
    const path = copyOf(name)
    const { changed } = await change('wrap', host, path)
    expect((await change('unwrap', host, path)).changed).toEqual(changed)
    expect(read(path)).toBe(before)
    // Nothing is left to be remembered.
    expect(readdirSync(records)).toEqual([])
  })

  it('is the same after servers were wrapped and unwrapped one by one', async () => {
    const path = copyOf(name)
    const { changed: names } = await change('wrap', host, path)
    await change('unwrap', host, path)
    for (const each of names) await change('wrap', host, path, [each])
    for (const each of names) await change('unwrap', host, path, [each])
    expect(read(path)).toBe(before)
  })

  it('is not changed by wrapping twice, or unwrapping what is not wrapped', async () => {
    const path = copyOf(name)
    expect((await change('unwrap', host, path)).changed).toEqual([])
    expect(read(path)).toBe(before)
    const { changed } = await change('wrap', host, path)
    const wrapped = read(path)
    const again = await change('wrap', host, path)
    expect([again.changed, again.unchanged]).toEqual([[], changed])
    expect(again.diff).toBe('')
    expect(read(path)).toBe(wrapped)
  })

  it('keeps changes that were made while it was wrapped', async () => {
    const path = copyOf(name)
    await change('wrap', host, path)
    const comment = name.endsWith('.yaml') || name.endsWith('.toml') ? '# mine\n' : '// mine\n'
    writeFileSync(path, comment + read(path))
    await change('unwrap', host, path)
    expect(read(path)).toBe(comment + before)
  })

  it('has the same commands if the record was lost', async () => {
    const path = copyOf(name)
    await change('wrap', host, path)
    rmSync(records, { recursive: true })
    await change('unwrap', host, path)
    // An empty list of arguments may be left.
    expect(read(path).replaceAll(/,?\s*"?args"?(?::| =) \[\]/g, '')).toBe(
      before.replaceAll(/,?\s*"?args"?(?::| =) \[\]/g, ''),
    )
  })

  it('is restored when all lines end with CR LF', async () => {
    const path = copyOf(name)
    const windows = `\uFEFF${before.replaceAll('\n', '\r\n')}`
    writeFileSync(path, windows)
    await change('wrap', host, path)
    expect(read(path)).not.toMatch(/[^\r]\n/)
    await change('unwrap', host, path)
    expect(read(path)).toBe(windows)
  })

  it('is refused and not changed if it is cut off', async () => {
    const path = join(folder, name)
    // A TOML file that is cut between lines is a TOML file.
    const lengths = name.endsWith('.json') || name.endsWith('.jsonc') ? [1, 2, 3, 4] : []
    for (const quarter of lengths) {
      const cut = before.slice(0, Math.floor((before.trimEnd().length * quarter) / 5))
      writeFileSync(path, cut)
      await expect(change('wrap', host, path)).rejects.toThrow('it is not valid JSON: line ')
      expect(read(path)).toBe(cut)
    }
  })
})

describe('a command that was changed while it was wrapped', () => {
  it.each([
    ['cursor.json', '{"mcpServers"', '{ "mcpServers"', '"/srv/a.js"', '"/srv/b.js", "--new"'],
    [
      'codex.toml',
      'startup_timeout_sec = 20.0',
      'startup_timeout_sec = 30.0',
      '"@playwright/mcp@latest"',
      '"@playwright/mcp@1", "-x"',
    ],
    [
      'goose.yaml',
      'timeout: 300',
      'timeout: 30',
      "- '@modelcontextprotocol/server-memory'",
      '- other\n      - more',
    ],
    [
      'opencode.jsonc',
      '"enabled": true',
      '"enabled": false',
      '"my-mcp-command"',
      '"my-mcp-command", "-v"',
    ],
  ])('is unwrapped with its changes: %s', async (name, one, other, word, words) => {
    const path = copyOf(name)
    await change('wrap', hostOf(name), path)
    const wrapped = read(path)
    expect(wrapped).toContain(one)
    writeFileSync(path, wrapped.replace(one, other).replace(word, words))
    await change('unwrap', hostOf(name), path)
    expect(read(path)).toBe(
      read(configs + name)
        .replace(one, other)
        .replace(word, words),
    )
  })

  it('is left alone if the tap was removed by hand', async () => {
    const path = copyOf('cline.json')
    await change('wrap', 'cline', path)
    const own = read(configs + 'cline.json').replace('server.js', 'other.js')
    writeFileSync(path, own)
    expect((await change('unwrap', 'cline', path)).changed).toEqual([])
    expect(read(path)).toBe(own)
    await change('wrap', 'cline', path)
    await change('unwrap', 'cline', path)
    expect(read(path)).toBe(own)
  })
})

describe('servers without a command', () => {
  it('are refused if the command is not understood', async () => {
    const path = join(folder, 'kiro.json')
    writeFileSync(
      path,
      '{"mcpServers":{"a":{"command":"x","args":"y"},"b":{"command":1},"c":{"command":[]}}}',
    )
    const { refused, changed } = await change('wrap', 'kiro', path)
    expect(refused.map(({ name, url }) => [name, url])).toEqual([
      ['a', undefined],
      ['b', undefined],
      ['c', undefined],
    ])
    expect(changed).toEqual([])
  })

  it('are refused with their URLs', async () => {
    for (const [name, refused] of [
      ['claude-code.json', ['sentry']],
      ['gemini.json', ['remote', 'sse']],
      ['opencode.jsonc', ['jira']],
      ['windsurf.json', ['figma']],
      ['codex.toml', ['docs']],
      ['goose.yaml', ['remote']],
    ] as const) {
      const plan = await change('wrap', hostOf(name), copyOf(name))
      expect(plan.refused.map(({ name: each }) => each)).toEqual(refused)
      expect(plan.refused.every(({ url }) => url?.startsWith('https://'))).toBe(true)
    }
  })
})

describe('a file', () => {
  const entry = '{"mcpServers":{"a":{"command":"x"}}}'
  const path = join(folder, 'cursor.json')

  it('keeps its mode, and is followed through symbolic links', async () => {
    const folders = [join(folder, 'real'), join(folder, 'links')]
    for (const each of folders) mkdirSync(each)
    const [real = '', link = ''] = folders.map((each) => join(each, 'mcp.json'))
    writeFileSync(real, entry)
    chmodSync(real, 0o640)
    symlinkSync(real, link)
    await change('wrap', 'cursor', link)
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(statSync(real).mode & 0o777).toBe(0o640)
    expect(read(real)).toContain('"tap"')
    // It is the same file, whatever its name.
    await change('unwrap', 'cursor', real)
    expect(read(link)).toBe(entry)
    expect(readdirSync(join(folder, 'real'))).toEqual(['mcp.json'])
  })

  it('is not replaced if another program has changed it', async () => {
    writeFileSync(path, entry)
    const plan = await planChange(placeOf('cursor', path), {
      action: 'wrap',
      words: WORDS,
      names: undefined,
      records,
    })
    writeFileSync(path, `${entry}\n`)
    await expect(plan && applyPlan(plan)).rejects.toThrow('changed by another program')
    expect(read(path)).toBe(`${entry}\n`)
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    // The record of what was not done does no harm.
    await change('wrap', 'cursor', path)
    await change('unwrap', 'cursor', path)
    expect(read(path)).toBe(`${entry}\n`)
  })

  it('has a copy that only its owner can read while it is wrapped', async () => {
    writeFileSync(path, entry)
    const { records: record } = await change('wrap', 'cursor', path)
    expect(read(record.backup)).toBe(entry)
    for (const name of readdirSync(records))
      expect(statSync(join(records, name)).mode & 0o777).toBe(0o600)
    await change('unwrap', 'cursor', path)
    expect(existsSync(record.backup)).toBe(false)
  })

  it.each<[what: string, content: string | Buffer, message: string]>([
    ['is not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'it is not UTF-8'],
    ['is UTF-16', Buffer.from(`\uFEFF${entry}`, 'utf16le'), 'it is not UTF-8'],
    ['is empty', '', 'line 1, column 1: expected a value'],
    ['is a list', '[]', 'expected an object'],
    [
      'has a key twice',
      '{"mcpServers":{"a":{"command":"x","command":"y"}}}',
      '"command" is defined twice',
    ],
    ['has text after its end', `${entry}}`, 'expected the end of the file'],
    ['is nested too deeply', `{"a":${'['.repeat(1000)}${']'.repeat(1000)}}`, 'nested too deeply'],
    ['has an unfinished comment', `/* ${entry}`, 'expected a value'],
    ['has a control character in a string', '{"a":"\n"}', 'expected a string'],
  ])('is refused if it %s', async (_, content, message) => {
    writeFileSync(path, content)
    await expect(change('wrap', 'cursor', path)).rejects.toThrow(message)
    expect(readFileSync(path)).toEqual(Buffer.from(content))
  })

  it.each([
    ['cursor', 'json', '{"x":"', '","mcpServers":{"a":{"command":"x"}}}'],
    ['codex', 'toml', 'x = "', '"\n[mcp_servers.a]\ncommand = "x"\n'],
  ])('of %s may have long texts and many comments', async (host, extension, start, end) => {
    const large = join(folder, `large.${extension}`)
    const comments = (extension === 'toml' ? '# x\n' : '// x\n').repeat(300_000)
    const content = comments + start + 'x'.repeat(5_000_000) + end
    writeFileSync(large, content)
    expect((await change('wrap', host, large)).changed).toEqual(['a'])
    await change('unwrap', host, large)
    expect(read(large) === content).toBe(true)
    writeFileSync(large, Buffer.alloc(16 * 1024 * 1024 + 1, ' '))
    await expect(change('wrap', host, large)).rejects.toThrow('it has more than 16777216 bytes')
  })

  it('is refused if its command is needed elsewhere by an alias', async () => {
    const yaml = join(folder, 'goose.yaml')
    const content =
      'program: &p npx\nextensions:\n  a:\n    cmd: &c uvx\n    args: []\n  b:\n    note: *c\n    cmd: *p\n'
    writeFileSync(yaml, content)
    await expect(change('wrap', 'goose', yaml)).rejects.toThrow('change it by hand')
    expect(read(yaml)).toBe(content)
  })

  it('is refused if it is a folder', async () => {
    await expect(change('wrap', 'cursor', folder)).rejects.toThrow('not a regular file')
  })
})

describe('a diff', () => {
  it('has the lines that change, with their surroundings', async () => {
    const { diff } = await change('wrap', 'claude-desktop', copyOf('claude-desktop.json'))
    expect(diff.replaceAll(folder, '')).toMatchInlineSnapshot(`
      "--- /claude-desktop.json
      +++ /claude-desktop.json
      @@ -2,11 +2,12 @@
         "globalShortcut": "Alt+Space",
         "mcpServers": {
           "filesystem": {
      -      "command": "npx",
      -      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/ann/Documents"]
      +      "command": "/usr/bin/node",
      +      "args": ["/opt/ccmcp/dist/cli.js", "tap", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/Users/ann/Documents"]
           },
           "local": {
      -      "command": "/Users/ann/bin/my server"
      +      "command": "/usr/bin/node",
      +      "args": ["/opt/ccmcp/dist/cli.js", "tap", "--", "/Users/ann/bin/my server"]
           }
         }
       }
      "
    `)
  })

  it('has hunks with correct line numbers', async () => {
    const { diff } = await change('wrap', 'claude-code', copyOf('claude-code.json'))
    expect(diff.match(/^@@.*/gm)).toMatchInlineSnapshot(`
      [
        "@@ -13,9 +13,13 @@",
        "@@ -33,8 +37,8 @@",
      ]
    `)
  })
})

describe('places of hosts', () => {
  it.each(['linux', 'darwin', 'win32'])('are as they are documented for %s', (platform) => {
    const environment = platform === 'win32' ? { APPDATA: '/home/ann/AppData/Roaming' } : {}
    const all = HOST_NAMES.map((host) => [
      host,
      placesOf(host, { project: '/shop', home: '/home/ann', environment, platform })?.map(
        ({ path }) => path,
      ),
    ])
    expect(Object.fromEntries(all)).toMatchSnapshot()
  })

  it('are also paths', () => {
    expect(placesOf('./x/mcp.json', { project: '/shop' })?.[0]?.path).toBe('/shop/x/mcp.json')
    expect(placesOf('x.toml', { project: '/shop' })?.[0]?.path).toBe('/shop/x.toml')
    expect(placesOf('claude')).toBeUndefined()
    expect(placesOf('toString')).toBeUndefined()
    expect(
      basename(placesOf('codex', { environment: { CODEX_HOME: '/c' } })?.[1]?.path ?? ''),
    ).toBe('config.toml')
  })
})
