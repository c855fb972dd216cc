import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import {
  Child,
  GREETING,
  HANDSHAKE,
  TOOLS,
  call,
  killAll,
  ping,
  pong,
  serving,
  servingIsolated,
  text,
} from './child.js'
import { proves } from '../requirements/proves.js'

const WARNING =
  'ccmcp: output to stdout was redirected to stderr, because stdout carries the protocol. Use console.error for logs.\n'

const folders: string[] = []
afterEach(async () => {
  await killAll()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'ccmcp-wire-'))
  folders.push(made)
  return made
}

describe('the stdout of a server', () => {
  it('carries JSON lines only: what user code prints goes to stderr, with one warning', async () => {
    proves('stdio.stdout')
    const server = await serving()
    server.send(call(1, 'print'), ping(2), call(3, 'print'), ping(4))
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe(
      `${[GREETING, text(1, 'printed'), pong(2), text(3, 'printed'), pong(4)].join('\n')}\n`,
    )
    const printed = 'by console.log\nby a Console\nby write\nafter end\n'
    expect(server.stderr).toBe(WARNING + printed + printed)
    expect(server.code).toBe(0)
  })

  it('is guarded against a stream that is piped into it', async () => {
    const server = await serving()
    server.end(call(1, 'pipe'), ping(2))
    await server.closed()
    expect(server.lines.toSorted()).toEqual([GREETING, text(1, 'piped'), pong(2)].toSorted())
    expect(server.stderr).toBe(`${WARNING}by pipe\n`)
  })

  it('calls the callback of write()', async () => {
    const server = await serving()
    server.end(call(1, 'writeAndWait'))
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'written')])
    expect(server.stderr).toBe(`${WARNING}confirmed\n`)
  })

  it('does not lose the text of process.stdout.end(text)', async () => {
    const server = await serving()
    server.end(call(1, 'end'), ping(2))
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'ended'), pong(2)])
    expect(server.stderr).toBe(`${WARNING}last words\n`)
  })

  it('calls the callback of process.stdout.end(callback)', async () => {
    const server = await serving()
    server.send(call(1, 'endAndWait'))
    await server.line(1)
    expect(server.lines).toEqual([GREETING, text(1, 'ended')])
  })
})

describe('separate file descriptors', () => {
  const junk = ['junk of console', 'junk of writeSync', 'junk of a child', ''].join('\n')

  it('carry nothing that the server and its children write to stdout', async () => {
    proves('stdio.stdout')
    const server = await servingIsolated()
    server.end(call(1, 'junk'), ping(2))
    await server.closed()
    expect(server.stdout.toString()).toBe(`${[GREETING, text(1, 'done'), pong(2)].join('\n')}\n`)
    expect(server.stderr).toBe(junk)
    expect(server.code).toBe(0)
  })

  it('are not passed on to child processes', async () => {
    const server = await servingIsolated()
    server.end(call(1, 'environment'))
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'unset unset')])
  })

  it('can be set by the option `wire`', async () => {
    const server = new Child('sh', ['-c', 'exec node "$0" 3<&0 4>&1 </dev/null 1>&2', TOOLS], {
      env: { OPTIONS: '{"wire":[3,4]}' },
    })
    server.end(...HANDSHAKE, call(1, 'junk'), call(2, 'environment'), ping(3))
    await server.closed()
    expect(server.stdout.toString()).toBe(
      `${[GREETING, text(1, 'done'), text(2, 'unset unset'), pong(3)].join('\n')}\n`,
    )
    expect(server.stderr).toBe(junk)
    expect(server.code).toBe(0)
  })

  it('are not passed on to child processes if both the option and the launcher name them', async () => {
    const server = await servingIsolated({ env: { OPTIONS: '{"wire":[3,4]}' } })
    server.end(call(1, 'environment'))
    await server.closed()
    expect(server.lines).toEqual([GREETING, text(1, 'unset unset')])
  })

  it('may be regular files', async () => {
    const home = folder()
    writeFileSync(
      join(home, 'input.txt'),
      [...HANDSHAKE, call(1, 'junk'), call(2, 'nap', { ms: 500 }), ping(3)].join('\n'),
    )
    const server = new Child(
      'sh',
      ['-c', 'CCMCP_WIRE=3,4 exec node "$0" 3<input.txt 4>output.txt </dev/null', TOOLS],
      { cwd: home },
    )
    await server.closed()
    expect(readFileSync(join(home, 'output.txt'), 'utf8')).toBe(
      `${[GREETING, text(1, 'done'), pong(3), text(2, 'slept')].join('\n')}\n`,
    )
    expect(server.stdout.toString()).toBe(junk)
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('are rejected if one is not open', async () => {
    const server = new Child(process.execPath, [TOOLS], { env: { CCMCP_WIRE: '93,94' } })
    await server.closed()
    expect(server.stderr).toContain(
      'Error: File descriptor 93 is named by CCMCP_WIRE or "wire" but is not open; open it before the server is started\n',
    )
    expect(server.stdout.toString()).toBe('')
    expect(server.code).toBe(1)
  })

  it('are rejected if the launcher has not opened 3 and 4', async () => {
    const server = new Child(process.execPath, [TOOLS], { env: { CCMCP_WIRE: '3,4' } })
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toContain(
      'Error: File descriptor 3 is named by CCMCP_WIRE or "wire" but is not open; open it before the server is started\n',
    )
    expect(server.code).toBe(1)
  })

  it('are rejected if the launcher has opened only 3', async () => {
    const server = new Child('sh', ['-c', 'CCMCP_WIRE=3,4 exec node "$0" 3<&0 </dev/null', TOOLS])
    server.send(ping(1))
    await server.closed()
    expect(server.stderr).toContain(
      'Error: File descriptor 4 is named by CCMCP_WIRE or "wire" but is not open; open it before the server is started\n',
    )
    expect(server.code).toBe(1)
  })

  it('are rejected if CCMCP_WIRE is invalid', async () => {
    const server = new Child(process.execPath, [TOOLS], { env: { CCMCP_WIRE: '3;4' } })
    await server.closed()
    expect(server.stderr).toContain(
      'Error: CCMCP_WIRE must be two file descriptors, such as 3,4, not "3;4"\n',
    )
    expect(server.code).toBe(1)
  })
})
