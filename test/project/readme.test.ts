import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConnectOptions, connect, http, stdio } from '../../src/client.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { VERSION } from '../../src/version.js'
import { Child } from '../stdio/child.js'

/* The programs of README.md run as written, in a folder that has the package. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, code = '']) => code,
  )
const [server = '', asking = '', serving = '', testing = '', client = '', ...others] = blocks('js')
const commands = blocks('sh').join('')

const folder = mkdtempSync(join(tmpdir(), 'ccmcp-readme-'))
beforeAll(() => {
  const links = { ccmcp: root, zod: join(root, 'node_modules', 'zod') }
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
  for (const [name, target] of Object.entries(links))
    symlinkSync(target, join(folder, 'node_modules', name), 'dir')
  symlinkSync(join(root, 'dist', 'cli.js'), join(folder, 'node_modules', '.bin', 'ccmcp'))
  const programs = { server, asking, serving, testing, client }
  for (const [name, code] of Object.entries(programs))
    writeFileSync(join(folder, `${name}.mjs`), code)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(command: string, ...args: string[]): string {
  const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, HOME: folder }
  const { stdout, stderr, status } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env, NO_COLOR: '1', NPM_CONFIG_OFFLINE: 'true', NPM_CONFIG_UPDATE_NOTIFIER: 'false' },
  })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout
}

describe('README.md', () => {
  it('has a server of twelve lines at most, without blank ones', () => {
    expect(server.split('\n').filter(Boolean).length).toBeLessThanOrEqual(12)
    expect(others).toEqual([])
  })

  it('has a server that runs as written, in every revision', async () => {
    for (const { id: revision } of revisions) {
      await using connected = await connect(stdio(process.execPath, [join(folder, 'server.mjs')]), {
        revision,
      })
      expect(connected.server).toEqual({ name: 'calculator', version: '1.0.0' })
      const { content } = await connected.callTool('add', { a: 2, b: 40 })
      expect(content).toEqual([{ type: 'text', text: '{"sum":42}' }])
    }
  })

  // On Windows npx is a .cmd file, which needs a shell.
  it.skipIf(process.platform === 'win32')('has a line that calls it', () => {
    const [line = '', arguments_ = ''] = /^npx ccmcp (call .*)$/m.exec(commands) ?? []
    expect(line).not.toBe('')
    expect(run('npx', 'ccmcp', ...arguments_.split(' '))).toBe('{"sum":42}\n')
  })

  it('has a tool that asks the user, in every revision with forms', async () => {
    const asks = revisions.filter(({ fields }) => fields.formString.length > 0)
    expect(asks.length).toBeGreaterThan(2)
    for (const { id: revision } of asks)
      for (const [sure, text] of [
        [true, 'Removed.'],
        [false, 'Nothing was removed.'],
      ] as const) {
        const elicit: ConnectOptions['elicit'] = () => ({ action: 'accept', content: { sure } })
        const target = stdio(process.execPath, [join(folder, 'asking.mjs')])
        await using connected = await connect(target, { revision, elicit })
        expect((await connected.callTool('remove')).content).toEqual([{ type: 'text', text }])
      }
  })

  it('has a server over HTTP', async () => {
    const child = new Child(process.execPath, [join(folder, 'serving.mjs')], { env: { PORT: '0' } })
    await child.until(() => child.lines.length > 0, 'the URL')
    await using connected = await connect(http(child.lines[0] ?? ''))
    expect((await connected.callTool('hello')).content).toEqual([{ type: 'text', text: 'Hello.' }])
  })

  it('has a test in every revision, over each transport', () => {
    const lines = run(process.execPath, 'testing.mjs').trim().split('\n')
    expect(lines).toHaveLength(2 * revisions.length)
    for (const line of lines)
      expect(line).toMatch(
        /^(?:memory|http), \d{4}-\d\d-\d\d \[ \{ type: 'text', text: 'Hello\.' \} \]$/,
      )
  })

  it('has a client', () => {
    const output = run(process.execPath, 'client.mjs')
    expect(output).toContain("2026-07-28 { name: 'calculator', version: '1.0.0' }\nadd\n")
    expect(output).toContain('structuredContent: { sum: 42 }')
  })

  it('names the tarball of this version', () => {
    expect(commands).toContain(`npm install ./ccmcp-${VERSION}.tgz`)
  })

  it('begins with npm run demo and npm test', () => {
    expect(commands.split('\n').map((line) => line.replace(/ *#.*/, ''))).toMatchObject([
      'npm run demo',
      'npm test',
      ...Array<unknown>(commands.split('\n').length - 2).fill(expect.any(String)),
    ])
  })

  it('has at most 150 lines', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
  })

  it('links only to files that exist', () => {
    const targets = [...readme.matchAll(/(?:\]\(|src="|srcset=")(?!https:)([^)#"]+)/g)]
    expect(targets.length).toBeGreaterThan(20)
    for (const [, target = ''] of targets) expect(existsSync(join(root, target)), target).toBe(true)
  })
})
