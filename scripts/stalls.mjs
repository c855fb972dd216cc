// Runs tests while random ones of their processes are paused for up to two seconds, two at a time, as on a very busy
// machine: workers of the test runner, servers, redis-server, browsers. Linux only. Tests with `script` (a terminal)
// cannot be judged: it stops itself when its child is stopped.
//
//   npm run test:stalls -- test/redis/faults.test.ts [more arguments of vitest]
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const MAX_PAUSE = 2000
const MAX_GAP = 400

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const args = process.argv.slice(2)
if (process.platform !== 'linux' || args.length === 0) {
  process.stderr.write('Usage, on Linux: npm run test:stalls -- FILE …\n')
  process.exit(2)
}

const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const child = spawn(process.execPath, [vitest, 'run', ...args], { cwd: root, stdio: 'inherit' })
const paused = new Set()
const end = new AbortController()

/** The state and the parent of a process; undefined if it has ended. */
function processOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** The running descendants of the test runner. */
function descendants() {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)) ?? [])
  const found = new Set([child.pid])
  for (let size = 0; size < found.size;) {
    size = found.size
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
  }
  // A process that a test has stopped itself is left alone.
  return all.filter(
    ({ pid, state }) => pid !== child.pid && found.has(pid) && !'TZ'.includes(state),
  )
}

function signal(pid, name) {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}

async function pauseOneAfterAnother() {
  while (!end.signal.aborted) {
    await sleep(Math.random() * MAX_GAP)
    const running = descendants().filter(({ pid }) => !paused.has(pid))
    const { pid } = running[Math.floor(Math.random() * running.length)] ?? {}
    if (pid === undefined || end.signal.aborted || !signal(pid, 'SIGSTOP')) continue
    paused.add(pid)
    await sleep(Math.random() * MAX_PAUSE)
    signal(pid, 'SIGCONT')
    paused.delete(pid)
  }
}

child.on('exit', (code) => {
  end.abort()
  for (const pid of paused) signal(pid, 'SIGCONT')
  process.exitCode = code ?? 1
})
void pauseOneAfterAnother()
void pauseOneAfterAnother()
