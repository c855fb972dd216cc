import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CLIENT_ROWS } from './client-rows.js'
import { EXTENSION_ROWS } from './extension-rows.js'
import { HTTP_ROWS } from './http-rows.js'
import { MODES, type Mode, hookOf, turn } from './modes.js'
import { SERVER_ROWS } from './server-rows.js'
import { TASK_ROWS } from './task-rows.js'
import { SKILLS_ROWS } from './skills-rows.js'
import { TELEMETRY_ROWS } from './telemetry-rows.js'

/* Every kind of user function, failing in every way: the request ends, and the process lives. */

const lost: unknown[] = []
const lose = (error: unknown) => void lost.push(error)

beforeEach(() => {
  lost.length = 0
  process.on('unhandledRejection', lose).on('uncaughtException', lose)
})
afterEach(() => {
  vi.useRealTimers()
  process.off('unhandledRejection', lose).off('uncaughtException', lose)
})

describe.each([
  ...SERVER_ROWS,
  ...HTTP_ROWS,
  ...CLIENT_ROWS,
  ...EXTENSION_ROWS,
  ...TASK_ROWS,
  ...SKILLS_ROWS,
  ...TELEMETRY_ROWS,
])('$name', ({ run, fails, never }) => {
  it.each(Object.keys(MODES) as Mode[])('%s', async (mode) => {
    const hook = hookOf(mode)
    expect(await run(hook)).toBe(mode === 'never settles' ? never : fails)
    await hook.called
    for (let turns = 0; turns < 3; turns++) await turn()
    expect(lost).toEqual([])
  })
})
