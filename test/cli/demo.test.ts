import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newest, revisions } from '../../src/protocol/revisions/index.js'
import { wrapped } from '../../src/cli/demo/columns.js'
import { Child, ROOT } from '../stdio/child.js'
import { CLI, cli } from './command.js'

const source = (name: string) => readFileSync(join(ROOT, 'examples', 'demo', name), 'utf8')

/** The lines of each section, without its heading. */
function sections(stdout: string): Map<string, string[]> {
  const parts = stdout.trimEnd().split('\n\n')
  return new Map(
    parts.map((part) => {
      const [heading = '', ...lines] = part.split('\n')
      return [heading, lines]
    }),
  )
}

describe('ccmcp demo', () => {
  it('tells its story in a pipe, without pauses and colors, in at most 60 lines of 80 columns', async () => {
    const { code, stdout, stderr } = await cli(['demo'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(60)
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80)
    expect(stdout).not.toContain('\u001b')
    const shown = [...sections(stdout)]
    expect(shown.map(([heading]) => heading)).toEqual([
      '1  A server in twelve lines',
      '2  A client of 2024 and one of 2026 call it, each in its own dialect',
      '3  A tool asks the user: the same code, whichever revision the client has',
      '4  Progress, until the user cancels: call.signal ends the loop',
      '5  A stray console.log and a broken message: the conversation goes on',
      "6  Somebody else's server: ccmcp check finds what clients will stumble over",
      '7  Next',
    ])
    const [server = [], dialects = [], question = [], cancelled, mistakes, faults, next = []] =
      shown.map(([, rest]) => rest)
    // The code that is shown is the code that runs.
    expect(server.map((line) => line.slice(2))).toEqual(source('server.mjs').trimEnd().split('\n'))
    expect(server).toHaveLength(12)
    expect(dialects[0]?.split(/ +/).filter(Boolean)).toEqual([revisions[0]?.id, newest.id])
    expect(dialects[1]).toBe(
      '  → {"method":"initialize","params":{     → {"method":"tools/call","params":{',
    )
    expect(dialects.at(-1)).toBe(
      '    "text":"2 saved",…}],…}}                "content":[{"text":"2 saved",…}],…}}',
    )
    expect(source('remove.mjs')).toContain(question[0]?.trim())
    expect(question[2]).toBe('  ← {"method":"elicitation/create",…}     ← {"result":{')
    expect(question[3]).toContain('"resultType":"input_required",')
    expect(cancelled).toEqual([
      '  zip █████░░░░░░░ 5/12',
      '  → {"method":"notifications/cancelled","params":{"requestId":2,…}}',
    ])
    expect(mistakes).toEqual([
      '  ! photo 1 packed (moved to stderr)',
      '  → {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{ cut off',
      '  ← {"error":{"message":"Parse error: unexpected end at position 56",…}}',
      '  ← {"result":{"content":[{"text":"2 saved",…}],…}} (of the next call)',
    ])
    expect(faults).toEqual([
      '  stray-text: Write logs to stderr (console.error), never to stdout.',
      '    Weather is ready',
      '    ~~~~~~~~~~~~~~~~ spec 2026-07-28/basic/transports/stdio',
      '  invalid-schema: forecast inputSchema properties/at/type: must be one of strin…',
      '    …,"inputSchema":…:{"at":{"type":"date"}}}}]}}',
      '                    ~~~~~~~~~~~~~~~~~~~~~~~~~ spec 2025-11-25/server/tools#tool',
      '  schema: result.content must be an array, not "Sunny"',
      '    …lt":{"content":"Sunny"}}',
      '                    ~~~~~~~ spec 2025-11-25/schema',
    ])
    expect(next[1]).toBe('  ./ccmcp check -- npx some-server      what a server does wrong')
  })

  it('uses colors if they are asked for', async () => {
    const { stdout } = await cli(['demo'], '', { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
    expect(stdout).toContain('\u001b[1m1  A server in twelve lines\u001b[0m\n')
    expect(stdout).toContain("from\u001b[0m \u001b[32m'ccmcp'\u001b[0m\n")
  })

  it('has three faults in its faulty server, which ccmcp check reports', async () => {
    const command = [process.execPath, join(ROOT, 'examples', 'demo', 'faulty.mjs')]
    const { stdout } = await cli(['check', '--format', 'json', '--', ...command])
    const { findings } = JSON.parse(stdout) as { findings: { rule: string; severity: string }[] }
    const faults = findings.filter(({ severity }) => severity !== 'info')
    expect(faults.map(({ rule }) => rule).toSorted()).toEqual([
      'invalid-schema',
      'schema',
      'stray-text',
    ])
  })

  it('--wire shows every message of a session in two revisions', async () => {
    const { code, stdout, stderr } = await cli(['demo', '--wire'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    const messages = lines.filter((line) => /^[<>] /.test(line)).map((line) => line.slice(2))
    for (const message of messages) expect(JSON.parse(message)).toMatchObject({ jsonrpc: '2.0' })
    expect(messages.filter((message) => message.includes('"text":"42"'))).toHaveLength(1)
    const methods = lines
      .filter((line) => line.startsWith('> '))
      .map((line) => (JSON.parse(line.slice(2)) as { method: string }).method)
    expect(methods).toEqual([
      'server/discover',
      'tools/call',
      'initialize',
      'notifications/initialized',
      'tools/list',
      ...Array<string>(5).fill('tools/call'),
      'resources/list',
      'resources/read',
      'prompts/list',
      'prompts/get',
    ])
    expect(lines.at(-1)).toBe('The server has exited.')
  })

  it.each([[[]], [['--wire']]])('ends quietly when its pipe is closed: %j', async (options) => {
    const child = new Child(process.execPath, [CLI, 'demo', ...options], { reading: false })
    await child.closeOutput()
    await child.exited()
    expect({ code: child.code, stderr: child.stderr }).toEqual({ code: 0, stderr: '' })
  })

  it.runIf(process.platform === 'linux').each(['to its end', 'until Ctrl-C'])(
    'leaves no process behind: %s',
    async (until) => {
      // Servers inherit it, so that they can be found.
      const home = mkdtempSync(join(tmpdir(), 'ccmcp-demo-'))
      onTestFinished(() => rmSync(home, { recursive: true, force: true }))
      const child = new Child(process.execPath, [CLI, 'demo'], { env: { HOME: home } })
      await child.until(() => child.lines.length > 14, 'the second section')
      expect(running(home)).toContain(child.pid)
      if (until === 'until Ctrl-C') child.give('SIGINT')
      await child.exited()
      expect({ code: child.code, stderr: child.stderr }).toEqual({ code: 0, stderr: '' })
      await expect.poll(() => running(home), { timeout: 60_000 }).toEqual([])
    },
  )
})

/** The processes that have this home. */
function running(home: string): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Boolean)
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`)
    } catch {
      return false // it has exited
    }
  })
}

describe('the lines of a message', () => {
  it.each([
    ['{"a":1,"b":2}', 7, ['{"a":1,', '"b":2}']],
    ['{"a/b":"cdefgh"}', 8, ['{"a/b":', '"cdefgh"}']],
    ['{"abc/def":1}', 7, ['{"abc/', 'def":1}']],
    ['{}', 80, ['{}']],
  ])('%s in %i columns', (json, width, expected) => {
    expect(wrapped(json, width)).toEqual(expected)
  })
})
