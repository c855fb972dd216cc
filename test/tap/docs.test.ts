import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { tap } from '../../src/cli/tap.js'
import { view } from '../../src/cli/view.js'
import { ROOT } from '../stdio/child.js'

/* docs/tap.md matches the commands. */

const page = readFileSync(`${ROOT}docs/tap.md`, 'utf8')

it('has every option of tap and view', () => {
  const rows = Object.entries({ tap, view }).flatMap(([command, { options }]) =>
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
