import { expect, it, onTestFinished } from 'vitest'
import { Child, heldTimers } from '../stdio/child.js'
import { CLI, server as serverFile } from './command.js'

/** Neither responds nor exits when it should. */
const STUCK = `
process.on('SIGTERM', () => {})
process.stdin.resume().on('end', () => process.stderr.write('stdin has ended\\n'))
process.stderr.write('pid ' + process.pid + '\\n')
setTimeout(() => process.exit(), 60_000)`

it.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s exits with %i when the server has been stopped', async (signal, code) => {
  const server = [
    '--',
    process.execPath,
    '-e',
    "process.stdin.on('data', () => console.error('asked'))",
  ]
  const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...server])
  await child.said('asked')
  child.give(signal)
  await child.closed()
  expect([child.code, child.signal]).toEqual([code, null])
  expect(child.stderr).toContain('ccmcp: Interrupted')
})

it('a second Ctrl-C exits at once, without waiting for the server', async () => {
  const server = ['--', process.execPath, '-e', STUCK]
  // Without the 2 s after which the server gets SIGTERM, and then SIGKILL.
  const child = new Child(process.execPath, [CLI, 'call', 'x', '--verbose', ...server], {
    env: heldTimers(2000),
  })
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

it.skipIf(process.platform === 'win32')(
  'a daemon that the server has started, and that holds its pipes, does not keep the command alive',
  async () => {
    const args = ['call', 'pid', '--', process.execPath, serverFile('daemon')]
    const child = new Child(process.execPath, [CLI, ...args])
    await child.until(() => child.lines.length > 0, 'the pid of the daemon')
    const pid = Number(child.lines[0])
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    await child.closed()
    expect([child.code, child.stderr]).toEqual([0, ''])
    // It is in a session of its own, and was not ended with the server.
    expect(process.kill(pid, 0)).toBe(true)
  },
)
