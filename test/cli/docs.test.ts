import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { call } from '../../src/cli/call.js'
import type { Command } from '../../src/cli/command.js'
import { list } from '../../src/cli/list.js'
import { loginCommand } from '../../src/cli/login.js'
import { logoutCommand } from '../../src/cli/logout.js'
import { variableOf } from '../../src/cli/options.js'
import { playCommand } from '../../src/cli/play.js'
import { prompt } from '../../src/cli/prompt.js'
import { read } from '../../src/cli/read.js'
import { resume } from '../../src/cli/resume.js'
import { serve } from '../../src/cli/serve.js'
import { subscribe } from '../../src/cli/subscribe.js'
import { tasksCommand } from '../../src/cli/tasks.js'
import { worker } from '../../src/cli/worker.js'
import { CCMCP, ROOT } from '../stdio/child.js'
import { ccmcp } from './command.js'

/* docs/command-line.md matches the help of the command line. */

const page = readFileSync(`${ROOT}docs/command-line.md`, 'utf8')
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')))

interface Row {
  option: string
  about: string
}
function optionsOf({ options }: Command): Row[] {
  return Object.entries(options)
    .filter(([name]) => name !== 'help')
    .map(([name, { value, description }]) => {
      const shown =
        value === undefined ? '' : ` ${typeof value === 'string' ? value : value.join('|')}`
      return { option: `\`--${name}${shown}\``, about: description }
    })
}

it('has every option of serve, with its variable', () => {
  const written = rows.filter(
    ([, option, variable]) =>
      option?.startsWith('`--') === true && variable?.startsWith('`CCMCP_') === true,
  )
  expect(written.map(([, option, variable, about]) => ({ option, variable, about }))).toEqual(
    optionsOf(serve).map((row) => ({
      ...row,
      variable: `\`${variableOf(row.option.slice(3).split(/[ `]/)[0] ?? '')}\``,
    })),
  )
})

describe.each(
  Object.entries({
    list,
    call,
    resume,
    read,
    prompt,
    subscribe,
    play: playCommand,
    login: loginCommand,
    logout: logoutCommand,
    tasks: tasksCommand,
    worker,
  }),
)('ccmcp %s', (name, command) => {
  const written = rows.filter(
    ([, option, of]) =>
      option?.startsWith('`--') === true &&
      ((of === 'all' && command.takesServerCommand === true) ||
        of?.split(', ').includes(name) === true),
  )
  it('has its options in docs/command-line.md', () => {
    const byOption = (one: Row, other: Row) => (one.option < other.option ? -1 : 1)
    expect(
      written.map(([, option = '', , about = '']) => ({ option, about })).toSorted(byOption),
    ).toEqual(optionsOf(command).toSorted(byOption))
  })
  it('shows them in its help', async () => {
    const { stdout, stderr, code } = await ccmcp([name, '--help'])
    for (const { option, about } of optionsOf(command)) {
      expect(stdout).toContain(`  ${option.replaceAll('`', '')}`)
      expect(stdout).toContain(about)
    }
    expect([stderr, code]).toEqual(['', 0])
  })
})

it('has every command', async () => {
  const { stdout } = await ccmcp(['--help'])
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) {2,}(.*)$/gm)].map(
    ([, name = '', about = '']) => [name, about],
  )
  const written = rows
    .filter(([, command]) => command?.startsWith('`ccmcp ') === true)
    .map(([, command = '', about = '']) => [/^`ccmcp ([a-z]+)/.exec(command)?.[1], about])
  expect(written).toEqual(commands)
  expect(commands.length).toBeGreaterThan(7)
})

it('has examples whose output is correct', () => {
  const [, text = ''] = /```console\n([\s\S]*?)```/.exec(page) ?? []
  const examples = [...text.matchAll(/^\$ (.*)\n((?:(?!\$ ).*\n)*)/gm)]
  expect(examples.length).toBeGreaterThan(2)
  for (const [, line = '', shown] of examples) {
    const command = `ccmcp() { "${CCMCP}" "$@"; }; ${line}`
    const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
    expect(stdout + stderr).toBe(shown)
  }
})
