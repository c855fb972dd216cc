// Opens a capture with a million frames on the page of `ccmcp view --web`, in Chromium, and scrolls through it. Prints how
// long it takes to open it, the longest task while scrolling, and the memory of the page with its worker.
//
//   npm run bench:page [-- FRAMES]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { writeBigCapture } from './big-capture.mjs'

const LIMITS = { seconds: 20, task: 50, megabytes: 600 }
const frames = Number(process.argv[2] ?? 1_000_000)
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-page-'))
const file = join(folder, 'big.ndjson')
const MB = 1024 * 1024
/** Milliseconds after which it has failed. */
const TIMEOUT = 300_000

/** CPU seconds of the workers of all renderers (on Linux): what opening takes on a machine that does nothing else. */
function workerSeconds() {
  const ticks = (path) => {
    try {
      const stat = readFileSync(path, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return stat.includes('(DedicatedWorker)') ? Number(fields[11]) + Number(fields[12]) : 0
    } catch {
      return 0 // it has ended
    }
  }
  const list = (path) => {
    try {
      return readdirSync(path).filter((name) => /^\d+$/.test(name))
    } catch {
      return []
    }
  }
  const paths = list('/proc').flatMap((pid) =>
    list(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}/stat`),
  )
  return paths.map(ticks).reduce((sum, each) => sum + each, 0) / 100
}

/** The longest task of the page in a trace: milliseconds by the clock, and of CPU time. */
function longestTask(trace) {
  const { traceEvents } = JSON.parse(trace)
  const threads = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) => name.endsWith('RunTask') && threads.has(`${pid} ${tid}`),
  )
  const longest = (member) =>
    tasks.reduce((most, task) => Math.max(most, task[member] ?? 0), 0) / 1000
  return { count: tasks.length, clock: longest('dur'), cpu: longest('tdur') }
}

/** Scrolls in the page by wheel, scroll bar and keyboard. */
async function scroll(browser, page) {
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] })
  const list = page.locator('#rows .scroller')
  await list.hover()
  for (let i = 0; i < 60; i++) {
    await page.mouse.wheel(0, 1500)
    await page.waitForTimeout(16)
  }
  for (let i = 1; i <= 60; i++) {
    await list.evaluate((element, part) => {
      element.scrollTop = element.scrollHeight * part
    }, i / 60)
    await page.waitForTimeout(16)
  }
  await page.locator('#rows').focus()
  for (let i = 0; i < 60; i++) await page.keyboard.press(i % 2 === 0 ? 'PageUp' : 'ArrowUp')
  await page.waitForTimeout(500)
  return longestTask((await browser.stopTracing()).toString())
}

async function measure(url) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    page.on('pageerror', (error) => process.stdout.write(`${error.message}\n`))
    const started = performance.now()
    await page.goto(url)
    const isRead = (least) => {
      const [count = ''] =
        /[\d,]+(?= rows)/.exec(document.querySelector('.foot')?.textContent ?? '') ?? []
      const isReading = document.querySelector('progress') !== null
      return !isReading && Number(count.replaceAll(',', '')) >= least
    }
    await page.waitForFunction(isRead, frames, { timeout: TIMEOUT, polling: 100 })
    const seconds = (performance.now() - started) / 1000
    const worker = workerSeconds()
    const task = await scroll(browser, page)
    const { bytes } = await page.evaluate(() => performance.measureUserAgentSpecificMemory())
    return { seconds, worker, task, megabytes: bytes / MB }
  } finally {
    await browser.close()
  }
}

try {
  writeBigCapture(file, frames)
  process.stdout.write(`${frames} frames, ${Math.round(statSync(file).size / MB)} MB\n`)
  const server = spawn(process.execPath, [join(root, 'dist', 'cli.js'), 'view', file, '--web'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = await once(server.stdout, 'data')
    const { seconds, worker, task, megabytes } = await measure(String(line).trim())
    const load = loadavg()[0] ?? 0
    process.stdout.write(
      `load of the machine ${load.toFixed(1)}; CPU time of the worker ${worker.toFixed(1)} s; ${task.count} tasks, the longest by the clock ${task.clock.toFixed(1)} ms\n`,
    )
    const shown = [
      ['opened in', seconds, LIMITS.seconds, 's'],
      ['longest task while scrolling (CPU time)', task.cpu, LIMITS.task, 'ms'],
      ['memory of page and worker', megabytes, LIMITS.megabytes, 'MB'],
    ]
    for (const [what, value, limit, unit] of shown) {
      const verdict = value <= limit ? 'ok    ' : 'FAILED'
      process.stdout.write(
        `${verdict} ${what}: ${value.toFixed(1)} ${unit} (limit ${limit} ${unit})\n`,
      )
      if (value > limit) process.exitCode = 1
    }
  } finally {
    server.kill('SIGINT')
    await once(server, 'exit')
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
