import { describe, expect, it } from 'vitest'
import { call } from '../../src/cli/call.js'
import type { Command } from '../../src/cli/command.js'
import { suggestCommand } from '../../src/cli/hints.js'
import { list } from '../../src/cli/list.js'
import { read } from '../../src/cli/read.js'
import { prompt } from '../../src/cli/prompt.js'
import { UsageError } from '../../src/cli/options.js'
import { ccmcp, server } from './command.js'

const AFTER = 'Put the command of a server after "--"; did you mean: '
const PAIRS = 'Pass arguments as name=value; did you mean: '
const NAMES = 'Pass arguments as name=value, such as a=2, not '
const LISTED = '; "ccmcp list" shows their names'
const SWAPPED = 'The name comes before the server; did you mean: '
const UNKNOWN = 'Unknown option --a; pass arguments as name=value; did you mean: '
const module = 'examples/archive.mjs'
const ARGS = 'Pass arguments with --args; did you mean: '

describe('suggestCommand', () => {
  it.each<[Command, string[], string]>([
    [list, ['node', 'server.js'], `${AFTER}ccmcp list -- node server.js`],
    [list, ['npx -y foo'], `${AFTER}ccmcp list -- npx -y foo`],
    [list, ['npx', '-y', 'foo'], `${AFTER}ccmcp list -- npx -y foo`],
    [
      list,
      ['--json', 'npx', '-y', "it's", '--timeout', '5'],
      `${AFTER}ccmcp list --json --timeout 5 -- npx -y 'it'\\''s'`,
    ],
    [list, ['./server.js', '--port', '3'], `${AFTER}ccmcp list -- node ./server.js --port 3`],
    [
      call,
      ['get', '--url', 'http://example.com/x'],
      'Unknown option --url; pass arguments as name=value; did you mean: ccmcp call get url=http://example.com/x',
    ],
    [
      call,
      ['get', '--file', './server.mjs', '--', 'node', 'x.mjs'],
      'Unknown option --file; pass arguments as name=value; did you mean: ccmcp call get file=./server.mjs -- node x.mjs',
    ],
    [list, ['server.py', '--port=3'], `${AFTER}ccmcp list -- python3 server.py --port=3`],
    [
      call,
      ['add', 'node', 'server.js', '--args', '{}'],
      `${AFTER}ccmcp call add --args '{}' -- node server.js`,
    ],
    [call, ['add', '{"a":2}'], `${ARGS}ccmcp call add --args '{"a":2}'`],
    [call, ['add', '{"a":2}', 'text'], `${ARGS}ccmcp call add text --args '{"a":2}'`],
    [
      call,
      ['add', '{"a":2}', 'node', 'x.js'],
      `${ARGS}ccmcp call add --args '{"a":2}' -- node x.js`,
    ],
    [
      call,
      ['add', '{"a":2}', '--', 'node', '-y'],
      `${ARGS}ccmcp call add --args '{"a":2}' -- node -y`,
    ],
    [
      call,
      ['add', 'node', 'server.js', 'a=2', 'b=40'],
      `${AFTER}ccmcp call add a=2 b=40 -- node server.js`,
    ],
    [
      call,
      ['add', '{"a":2}', 'b=40', 'https://example.com/mcp?x=1'],
      `${ARGS}ccmcp call add 'https://example.com/mcp?x=1' --args '{"a":2}' b=40`,
    ],
    // arguments without their names, or without "="
    [call, ['add', '2', '3'], `${NAMES}2 3${LISTED}`],
    [call, ['add', '2'], `${NAMES}2${LISTED}`],
    [call, ['add', '-2', '3'], `${NAMES}-2 3${LISTED}`],
    [call, ['add', 'grammar', '2'], `${NAMES}2${LISTED}`],
    [call, ['echo', 'no program'], `${NAMES}'no program'${LISTED}`],
    [call, ['add', 'a', '2', 'b', '3'], `${PAIRS}ccmcp call add a=2 b=3`],
    [call, ['add', './srv.mjs', 'a', '2', 'b', '3'], `${PAIRS}ccmcp call add ./srv.mjs a=2 b=3`],
    [call, ['add', 'srv.py', 'a', '2'], `${PAIRS}ccmcp call add a=2 -- python3 srv.py`],
    [
      call,
      ['add', 'a', '2', '--json', '--', 'node', 'x'],
      `${PAIRS}ccmcp call add --json a=2 -- node x`,
    ],
    [
      call,
      ['add', 'https://example.com/mcp', 'a', '2', 'b=3'],
      `${PAIRS}ccmcp call add https://example.com/mcp b=3 a=2`,
    ],
    [prompt, ['greet', 'name', 'Ada'], `${PAIRS}ccmcp prompt greet name=Ada`],
    // arguments as options
    [call, ['add', '--a', '2'], `${UNKNOWN}ccmcp call add a=2`],
    [call, ['add', '--a=2', '--b', '-3'], `${UNKNOWN}ccmcp call add a=2 b=-3`],
    [call, ['add', '--a', '--b', 'x'], `${UNKNOWN}ccmcp call add a=true b=x`],
    [call, ['add', './srv.mjs', '--a', '2'], `${UNKNOWN}ccmcp call add ./srv.mjs a=2`],
    [call, ['add', '--a', './srv.mjs'], `${UNKNOWN}ccmcp call add ./srv.mjs a=true`],
    [call, ['add', '--a', '2', '--', 'node', 'x'], `${UNKNOWN}ccmcp call add a=2 -- node x`],
    // JSON that a shell has changed
    [
      call,
      ['add', '{a:2}'],
      `{a:2} is not valid JSON; pass arguments with --args '{"a":2}' or as a=2`,
    ],
    // the server first
    [call, [module, 'add'], `${SWAPPED}ccmcp call add ${module}`],
    [call, [module, 'add', 'a=2', '--json'], `${SWAPPED}ccmcp call add ${module} --json a=2`],
    [call, [module, 'add', 'a', '2'], `${SWAPPED}ccmcp call add ${module} a=2`],
    [call, ['https://example.com/mcp', 'add'], `${SWAPPED}ccmcp call add https://example.com/mcp`],
    // a script that does not exist
    [list, ['server.py'], `server.py does not exist. ${AFTER}ccmcp list -- python3 server.py`],
    [
      call,
      ['add', './no.rb', 'a=2'],
      `./no.rb does not exist. ${AFTER}ccmcp call add a=2 -- ruby ./no.rb`,
    ],
    [prompt, ['greet', '{"name":"x"}'], `${ARGS}ccmcp prompt greet --args '{"name":"x"}'`],
  ])('%o %j', (command, args, message) => {
    expect(() => suggestCommand(command, args)).toThrow(new UsageError(message))
  })

  it.each<[Command, string[]]>([
    [list, []],
    [list, ['grammar']],
    [list, ['gramar']],
    [list, ['mcp.example.sh']],
    [list, ['./server.js']],
    [list, ['./server.js', '--jsno']],
    [list, ['grammar', '--unknown']],
    [list, ['grammar', 'text']],
    [list, ['--unknown', 'x', 'y']],
    [list, ['https://example.com/mcp', 'x']],
    [list, ['node', 'server.js', '--help']],
    [list, ['--', 'node', 'server.js']],
    [call, ['{"a":2}']],
    [call, ['add', 'a=2', 'b=40']],
    [call, ['add', './server.js', 'a=2', 'b:=40']],
    [call, ['add', 'https://example.com/mcp?x=1', 'a=2']],
    [call, ['add', 'a=2', '--', 'node', 'server.js', 'b=40']],
    [call, ['add', 'text', '--args', '{"a":2}']],
    [call, ['add', 'gramar']],
    [call, ['add', './server.js', '--jsno']],
    [call, ['add', '--agrs', '{}']],
    [call, ['examples/archive.mjs', 'grammar']],
    [call, ['no/such.mjs', 'gramar']],
    [read, ['https://example.com/a', './server.js']],
  ])('suggests nothing for %o %j', (command, args) => {
    expect(() => suggestCommand(command, args)).not.toThrow()
  })

  it('exits with code 2', async () => {
    expect(await ccmcp(['call', 'add', '{"a":2}'])).toEqual({
      code: 2,
      stdout: '',
      stderr: `ccmcp: ${ARGS}ccmcp call add --args '{"a":2}' (see "ccmcp call --help")\n`,
    })
    const { stderr, code } = await ccmcp(['list', 'nothing-near'])
    expect(stderr).toContain('or a file such as ./server.js, a URL, or a command after "--"')
    expect(code).toBe(2)
  })
})

it.each([['-V'], ['-v'], ['--version'], ['version']])(
  'prints its version with %s',
  async (word) => {
    const { stdout, stderr, code } = await ccmcp([word])
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/)
    expect([stderr, code]).toEqual(['', 0])
  },
)

describe('without a server argument', () => {
  it.each([
    [['list']],
    [['call', 'add', '--args', '{"a":2,"b":40}']],
    [['read', 'x://y']],
    [['prompt', 'greet', '--args', '{"name":"x"}']],
  ])('%j names the server in use', async (args) => {
    const { stderr } = await ccmcp(args)
    expect(stderr).toMatch(
      /^ccmcp: no server specified; using the bundled server ccmcp, which can write files in the working and the temporary directory\./,
    )
    expect(stderr).toContain(
      'Pass a URL, a module (./server.js) or a command after "--" to use another\n',
    )
  })
})

describe('did you mean', () => {
  it.each([
    [['prompt', 'gret', server('offer')], 'Unknown prompt: gret; did you mean greet?\n'],
    [
      ['read', 'text://nte', server('offer')],
      'Resource not found: text://nte; did you mean text://note?\n',
    ],
  ])('%j', async (args, message) => {
    const { stderr, code } = await ccmcp(args)
    expect(stderr).toContain(message)
    expect(code).toBe(1)
  })
})
