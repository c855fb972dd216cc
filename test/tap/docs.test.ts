import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { RULES } from '../../src/capture/rules.js'
import { check } from '../../src/cli/check.js'
import { tap } from '../../src/cli/tap.js'
import { view } from '../../src/cli/view.js'
import { ROOT } from '../stdio/child.js'

/* docs/tap.md matches the commands and the rules. */

const page = readFileSync(`${ROOT}docs/tap.md`, 'utf8')

it('has every option of tap, view and check', () => {
  const rows = Object.entries({ tap, view, check }).flatMap(([command, { options }]) =>
    Object.entries(options)
      .filter(([name]) => name !== 'help')
      .map(([name, option]) => {
        const { value: allowed = '' } = option
        const shown = typeof allowed === 'string' ? allowed : allowed.join('\\|')
        const value = shown === '' ? '' : ` ${shown}`
        return `| \`--${name}${value}\` | ${command} | ${option.description} |`
      }),
  )
  expect(page.match(/^\| `--.*$/gm)).toEqual(rows)
})

it('has every rule', () => {
  const rows = Object.entries(RULES).map(
    ([id, { severity, why }]) => `| \`${id}\` | ${severity} | ${why} |`,
  )
  expect(page.match(/^\| `[\w-]+` \| (?:info|warning|error) \|.*$/gm)).toEqual(rows)
})
