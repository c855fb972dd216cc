import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CCMCP, Child, heldTimers } from '../stdio/child.js'
import { CLI, OFFER, ccmcp } from './command.js'

let folder = ''
let file = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-play-'))
  file = join(folder, 'session.txt')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const FRESH = `A session.
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sum","arguments":{"a":2,"b":40}}}
> {nope
`
const sum = `< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\\"sum\\":42}"}],"isError":false,"structuredContent":{"sum":42}}}`

/** Also a server that starts slowly has the time to respond. */
const play = (args: readonly string[], env = {}) =>
  ccmcp(['play', '--timeout', '60', ...args], '', { env })

describe('ccmcp play', () => {
  it('records a session, and replays it in both framings', async () => {
    writeFileSync(file, FRESH)
    expect(await play([file, OFFER, '--record'])).toEqual({
      code: 0,
      stdout: `${file}: 3 messages written\n`,
      stderr: '',
    })
    const recorded = readFileSync(file, 'utf8')
    expect(recorded.split('\n')).toEqual([
      ...FRESH.split('\n').slice(0, 2),
      expect.stringContaining('"serverInfo":{"name":"offer"'),
      ...FRESH.split('\n').slice(2, 4),
      sum,
      '> {nope',
      expect.stringContaining('-32700'),
      '',
    ])
    for (const framing of ['lines', 'content-length'])
      expect(await play([file, OFFER, '--framing', framing])).toEqual({
        code: 0,
        stdout: `${file}: 4 messages sent, 3 received as expected\n`,
        stderr: '',
      })
    expect((await play([file, OFFER, '--record'])).stdout).toBe(
      `${file}: 3 messages written, no changes\n`,
    )
    expect(readFileSync(file, 'utf8')).toBe(recorded)
  })
  it('captures values and sends them, also when recording', async () => {
    const call = (id: number, a: string) =>
      `> {"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"sum","arguments":{"a":${a},"b":1}}}`
    const opening = FRESH.split('\n').slice(0, 2)
    const summed = (id: number, text: string, value: string) =>
      `< {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${text}}],"isError":false,"structuredContent":{"sum":${value}}}}`
    const transcript = [
      ...opening,
      '< {"jsonrpc":"2.0","id":1,"result":*}',
      call(2, '41'),
      summed(2, '~"{\\"sum\\":*}"', '$sum'),
      call(3, '$sum'),
      summed(3, '*', '43'),
      '',
    ].join('\n')
    writeFileSync(file, transcript)
    const { code, stdout } = await play([file, OFFER])
    expect([code, stdout]).toEqual([0, `${file}: 3 messages sent, 3 received as expected\n`])
    expect((await play([file, OFFER, '--record'])).stdout).toBe(
      `${file}: 3 messages written, no changes\n`,
    )

    const lost = transcript.replace('"sum":$sum', '"total":$sum')
    writeFileSync(file, lost)
    const unsent = await play([file, OFFER, '--record'])
    expect([unsent.code, unsent.stderr]).toEqual([
      1,
      `ccmcp: ${file}, line 6: no value was received for $sum\n${file} was not changed\n`,
    ])
    expect(readFileSync(file, 'utf8')).toBe(lost)

    writeFileSync(file, transcript.replace('$sum}}', '*}}'))
    const unknown = await play([file, OFFER])
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining(`${file}, line 6 sends $sum, but no "<" line before it sets it`),
    ])
  })
  it('shows differences', async () => {
    writeFileSync(file, FRESH)
    await play([file, OFFER, '--record'])
    const changed = readFileSync(file, 'utf8')
      .replace('"structuredContent":{"sum":42}', '"structuredContent":{"sum":41}')
      .replace('"serverInfo":{"name":"offer","version":"1.0.0"}', '"serverInfo":*')
    writeFileSync(file, changed)
    const { code, stdout, stderr } = await play([file, '--', process.execPath, CLI, 'serve', OFFER])
    expect(stdout).toBe(
      `${file}, line 6:\n  result.structuredContent.sum is 42, not 41\n  expected ${sum.slice(2).replace('{"sum":42}}}', '{"sum":41}}}')}\n  received ${sum.slice(2)}\n`,
    )
    expect([stderr, code]).toEqual([`ccmcp: ${file}: 1 difference\n`, 1])
    await play([file, OFFER, '--record'])
    expect(readFileSync(file, 'utf8')).toBe(
      changed.replace('"structuredContent":{"sum":41}', '"structuredContent":{"sum":42}'),
    )
  })
  it('shows every message with --verbose', async () => {
    writeFileSync(file, '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< *\n')
    const { stderr, code } = await play([file, '--verbose', OFFER])
    expect(stderr).toContain('> {"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    expect(stderr).toContain('< {"jsonrpc":"2.0","id":1,"result":{}}\n')
    expect(code).toBe(0)
  })

  const GARBAGE = `console.log('Listening\\nto\\nyou'); process.stdin.on('data', (data) => console.log('{"end-of-transcript":1}'))`
  const BAD = ['--', process.execPath, '-e', 'console.error("no luck"); process.exit(7)']
  it.each([
    [BAD, 3, ['line 3: nothing received'], ['It exited with code 7', 'no luck']],
    [[...BAD.slice(0, 1), 'no-such-command'], 3, [], ['It could not be started']],
    [
      ['--', process.execPath, '-e', GARBAGE],
      1,
      ['line 3:\n  it is not JSON', 'received Listening'],
      ['3 differences'],
    ],
  ])('explains a failing server: %j', async (args, exitCode, said, complained) => {
    writeFileSync(file, FRESH)
    await play([file, OFFER, '--record'])
    const before = readFileSync(file, 'utf8')
    const { code, stdout, stderr } = await play([file, ...args])
    for (const part of said) expect(stdout).toContain(part)
    for (const part of complained) expect(stderr).toContain(part)
    expect(code).toBe(exitCode)
    const recorded = await play([file, '--record', ...args])
    expect([recorded.code, recorded.stdout]).toEqual([exitCode, ''])
    expect(recorded.stderr).toContain(`${file} was not changed\n`)
    expect(readFileSync(file, 'utf8')).toBe(before)
  })
  it('writes the received messages when a response is missing', async () => {
    writeFileSync(
      file,
      '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n> {"jsonrpc":"2.0","id":2,"method":"x"}\n',
    )
    // When it gets the second request, the wait for its response ends.
    const half = `process.stdin.on('data', (data) => {
      if (/ping/.test(data)) console.log('{"jsonrpc":"2.0","id":1,"result":{}}')
      else if (/end-of/.test(data)) process.stdin.pause() && console.log('{"end-of-transcript":1}')
      else process.kill(process.ppid, 'SIGUSR2')
    })`
    const args = [file, '--record', '--', process.execPath, '-e', half]
    const { code, stderr } = await play(args, heldTimers(60_000))
    expect([code, stderr]).toEqual([1, `ccmcp: ${file}: no response to line 2\n`])
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4)
  })
  it.each([
    ['missing.txt', undefined, /Cannot read .*: ENOENT/],
    ['prose.txt', 'Hello.\n< {"a":1}\n', /is not a transcript: no line starts with ">"/],
    [
      'pattern.txt',
      '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {nope\n',
      /pattern\.txt: This expected message is not JSON: \{nope/,
    ],
    ['.', undefined, /Cannot read .*: EISDIR/],
  ])('rejects %s', async (name, content, problem) => {
    if (content !== undefined) writeFileSync(join(folder, name), content)
    const { code, stdout, stderr } = await play([join(folder, name), OFFER])
    expect(stderr).toMatch(problem)
    expect([code, stdout]).toEqual([2, ''])
  })
  it.each([[['--record']], [[]]])('exits on Ctrl-C without changing the file: %j', async (args) => {
    const before =
      '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {"jsonrpc":"2.0","id":1,"result":{}}\n'
    writeFileSync(file, before)
    const hang = `console.error('hanging'); process.stdin.resume()`
    const child = new Child(CCMCP, [
      'play',
      file,
      ...args,
      '--verbose',
      '--timeout',
      '60',
      '--',
      process.execPath,
      '-e',
      hang,
    ])
    await child.said('hanging')
    child.give('SIGINT')
    await child.closed()
    expect([child.code, child.stdout.toString()]).toEqual([130, ''])
    expect(readFileSync(file, 'utf8')).toBe(before)
  })
})
