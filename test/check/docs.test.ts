import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { RULES } from '../../src/capture/rules.js'
import { FINAL_PROBES, PROBES } from '../../src/check/probes.js'
import { HTTP_PROBES } from '../../src/check/http-probes.js'
import { check } from '../../src/cli/check.js'
import { ROOT } from '../stdio/child.js'

/* docs/check.md matches the command, the probes and the rules. */

const page = readFileSync(`${ROOT}docs/check.md`, 'utf8')

it('has every option of check', () => {
  const rows = Object.entries(check.options)
    .filter(([name]) => name !== 'help')
    .map(([name, option]) => {
      const { value: allowed = '' } = option
      const shown = typeof allowed === 'string' ? allowed : allowed.join('\\|')
      const value = shown === '' ? '' : ` ${shown}`
      return `| \`--${name}${value}\` | ${option.description} |`
    })
  expect(page.match(/^\| `--.*$/gm)).toEqual(rows)
})

it('has every rule', () => {
  const rows = Object.entries(RULES).map(
    ([id, { severity, why }]) => `| \`${id}\` | ${severity} | ${why} |`,
  )
  expect(page.match(/^\| `[\w-]+` \| (?:info|warning|error) \|.*$/gm)).toEqual(rows)
})

it('has every probe', () => {
  for (const { name } of [...PROBES, ...HTTP_PROBES, ...FINAL_PROBES])
    if (name !== 'id beyond 2^53')
      expect(page).toMatch(new RegExp(`^\\| (?:.*, )?${name}[ ,]`, 'm'))
})
