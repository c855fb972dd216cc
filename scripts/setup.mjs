// Prepares a checkout: installs and builds if necessary. Requires only Node and
// npm. All output goes to stderr and stdin is not read, since this may run before
// a server that uses stdin and stdout for the protocol.
//
// Hosts may start this concurrently and kill it at any time. One process works
// under a lock file with its id and that of its child, which may outlive it; the
// others wait. A lock whose owners are dead is removed. Installing and building
// can be repeated safely; dist/ is renamed into place when it is complete.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installed, needsBuild, needsInstall, root } from './fresh.mjs'

const lock = join(root, '.build-lock')

async function run(command, args) {
  const failed = (reason) => new Error(`"${command} ${args.join(' ')}" failed${reason}`)
  // On Windows npm is a .cmd file, which requires a shell.
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  const exited = once(child, 'exit').catch((error) => {
    throw failed(`: ${error.message}`)
  })
  if (child.pid !== undefined) {
    writeFileSync(`${lock}.${process.pid}`, `${process.pid} ${child.pid}`)
    renameSync(`${lock}.${process.pid}`, lock)
  }
  const [status] = await exited
  if (status !== 0) throw failed('')
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Returns undefined if the lock was acquired, the id of its owner if not, and 0 if a dead owner's lock was removed. */
function tryLock() {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, String(process.pid))
  try {
    linkSync(mine, lock) // atomic
    return undefined
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return ownerOf(lock) ?? breakLock()
  } finally {
    rmSync(mine, { force: true })
  }
}

function ownerOf(path) {
  try {
    const owners = readFileSync(path, 'utf8').split(' ').map(Number)
    // No build takes that long; the process id may have been reused.
    const old = Date.now() - statSync(path).mtimeMs > 10 * 60_000
    return old ? undefined : owners.find((pid) => pid > 0 && isAlive(pid))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function breakLock() {
  const removed = `${lock}.dead.${process.pid}`
  try {
    renameSync(lock, removed)
    // If another process has removed and acquired the lock meanwhile, restore it.
    if (ownerOf(removed) !== undefined) linkSync(removed, lock)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
  rmSync(removed, { force: true })
  return 0
}

function wait(milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

async function setUp() {
  if (needsInstall()) {
    process.stderr.write('ccmcp: installing packages…\n')
    await run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'])
    writeFileSync(installed, '')
  }
  if (needsBuild()) {
    process.stderr.write('ccmcp: building…\n')
    await run(process.execPath, [join(root, 'scripts', 'build.mjs')])
  }
}

try {
  for (let waited = 0; needsInstall() || needsBuild();) {
    const owner = tryLock()
    if (owner === undefined) {
      try {
        await setUp()
      } finally {
        rmSync(lock, { force: true })
      }
    } else if (owner > 0) {
      wait(100)
      if (++waited === 50)
        process.stderr.write(
          `ccmcp: waiting for process ${owner}, which is building (it holds ${lock})\n`,
        )
    }
  }
} catch (error) {
  const readOnly = error.code === 'EROFS' || error.code === 'EACCES' || error.code === 'EPERM'
  const advice = readOnly
    ? `this directory is not writable; run "npm run setup" in ${root} as a user with write permission, then start again`
    : error.message
  process.stderr.write(`ccmcp: setup failed: ${advice}\n`)
  process.exitCode = 1
}
