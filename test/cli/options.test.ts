import { delimiter } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type Options,
  UsageError,
  columns,
  listOf,
  pathsOf,
  readArguments,
  readVariables,
  suggestion,
  variableOf,
} from '../../src/cli/options.js'

const OPTIONS = {
  colour: { value: ['red', 'green'], description: 'which' },
  root: { value: 'DIR', description: 'where' },
  tools: { value: 'NAMES', list: true, description: 'what' },
  folder: { value: 'DIR', paths: true, description: 'where else' },
  'read-only': { description: 'whether' },
  help: { description: 'help' },
} satisfies Options

const read = (...args: string[]) => {
  const { values, positionals, command } = readArguments(args, OPTIONS)
  return { values: Object.fromEntries(values), positionals, command }
}

describe('the command line', () => {
  it.each([
    [[], {}, []],
    [['--colour', 'red', 'x', '--read-only'], { colour: 'red', 'read-only': 'true' }, ['x']],
    [['--root=--odd', '--root=a=b'], { root: 'a=b' }, []],
    [['--root='], { root: '' }, []],
    [['--root', '-'], { root: '-' }, []],
    [['--tools', 'a,b', '--tools=c'], { tools: 'a,b,c' }, []],
    [['--folder', 'a,b:c', '--folder=d;e'], { folder: 'a,b:c\0d;e' }, []],
    [['-', '-h'], { help: 'true' }, ['-']],
    [['--root', 'späße 👋\n'], { root: 'späße 👋\n' }, []],
  ])('parses %j', (args, values, positionals) => {
    expect(read(...args)).toEqual({ values, positionals, command: undefined })
  })
  it('does not parse arguments after --', () => {
    expect(read('x', '--', 'node', '--colour', '--', '-h')).toEqual({
      values: {},
      positionals: ['x'],
      command: ['node', '--colour', '--', '-h'],
    })
    expect(read('--').command).toEqual([])
  })
  it.each([
    [['--coluor', 'red'], 'Unknown argument "--coluor"; did you mean --colour?'],
    [['-x'], 'Unknown argument "-x"'],
    [['---'], 'Unknown argument "---"'],
    [['--=x'], 'Unknown argument "--=x"'],
    [['--toString'], 'Unknown argument "--toString"'],
    [['--__proto__'], 'Unknown argument "--__proto__"'],
    [['--colour'], '--colour needs a value: red, green'],
    [['--root', '--read-only'], '--root needs a value: DIR'],
    [
      ['--colour', 'gren'],
      '--colour: invalid value "gren"; expected red, green; did you mean green?',
    ],
    [['--read-only=yes'], '--read-only takes no value'],
  ])('rejects %j', (args, message) => {
    expect(() => read(...args)).toThrow(new UsageError(message))
  })
})

describe('variables', () => {
  it('are named after their options', () => expect(variableOf('read-only')).toBe('CCMCP_READ_ONLY'))
  it.each([
    [{}, {}],
    [{ CCMCP_COLOUR: 'red', CCMCP_ROOT: '', CCMCP_HELP: 'true', OTHER: 'x' }, { colour: 'red' }],
    [{ CCMCP_READ_ONLY: 'TRUE' }, { 'read-only': 'true' }],
    [{ CCMCP_FOLDER: ['', '/a,b', '', '/c', ''].join(delimiter) }, { folder: '/a,b\0/c' }],
    [{ CCMCP_FOLDER: delimiter }, {}],
    [{ CCMCP_READ_ONLY: '0' }, {}],
    [{ CCMCP_READ_ONLY: 'off' }, {}],
  ])('%j', (environment, values) => {
    expect(Object.fromEntries(readVariables(environment, OPTIONS))).toEqual(values)
  })
  it.each([
    [
      { CCMCP_COLOUR: 'reed' },
      'CCMCP_COLOUR: invalid value "reed"; expected red, green; did you mean red?',
    ],
    [{ CCMCP_READ_ONLY: 'maybe' }, 'CCMCP_READ_ONLY: invalid value "maybe"; expected true, false'],
    [
      { CCMCP_READ_ONLY: 'constructor' },
      'CCMCP_READ_ONLY: invalid value "constructor"; expected true, false',
    ],
  ])('rejects %j', (environment, message) => {
    expect(() => readVariables(environment, OPTIONS)).toThrow(new UsageError(message))
  })
})

it('parses lists', () => {
  expect(listOf('tools', ' a, b,,c ')).toEqual(['a', 'b', 'c'])
  expect(() => listOf('tools', ' , ')).toThrow('--tools needs at least one value')
})

it('parses paths', () => {
  expect(pathsOf(read('--folder', 'a', '--folder', 'b').values['folder'] ?? '')).toEqual(['a', 'b'])
})

it('suggests only similar names', () => {
  expect(suggestion('helo', ['hello', 'help'])).toBe('; did you mean hello?')
  expect(suggestion('zzzzzz', ['hello'])).toBe('')
  expect(suggestion('x', [])).toBe('')
})

it('aligns columns and puts wide cells on their own line', () => {
  expect(
    columns([
      ['a', 'one'],
      ['bbb', ''],
      ['c'.repeat(40), 'wide'],
    ]),
  ).toBe(`  a    one\n  bbb\n  ${'c'.repeat(40)}\n       wide`)
})
