import { expect, it, onTestFinished } from 'vitest'
import { Child } from '../stdio/child.js'
import { CLI } from './command.js'

/** Neither responds nor exits when it should. */
const STUCK = `
process.on('SIGTERM', () => {})
process.stdin.resume().on('end', () => process.stderr.write('stdin has ended\\n'))
process.stderr.write('pid ' + process.pid + '\\n')
setTimeout(() => process.exit(), 60_000)`

it('a second Ctrl-C exits at once, without waiting for the server', async () => {
  const server = ['--', process.execPath, '-e', STUCK]
  const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...server])
  await child.until(() => /pid \d+\n/.test(child.stderr), 'the pid of the server')
  const pid = Number(/pid (\d+)/.exec(child.stderr)?.[1])
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited.
    }
  })
  child.give('SIGINT')
  await child.said('stdin has ended')
  child.give('SIGINT')
  await child.exited()
  expect(child.code).toBe(130)
  // This is printed when the server has been stopped.
  expect(child.stderr).not.toContain('ccmcp: Interrupted')
})
