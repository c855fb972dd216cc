// Measures one curve of one subject in this process: node --expose-gc measure.mjs CURVE SUBJECT SIZES LEAST; prints a line
// of JSON per size: milliseconds, the longest time without a turn of the event loop, and bytes of heap that are kept.
import process from 'node:process'

const [, , name, subject, sizes, least] = process.argv
const now = performance.now.bind(performance)
let passed = 0
performance.now = () => now() + passed
globalThis.passTime = (milliseconds) => (passed += milliseconds)

const { CURVES } = await import('./curves.mjs')
const curve = CURVES[name]

async function measureOnce(n) {
  const { run, end } = await curve[subject](n)
  globalThis.gc()
  const heap = process.memoryUsage().heapUsed
  let longest = 0
  let last = now()
  const turn = () => {
    longest = Math.max(longest, now() - last)
    last = now()
  }
  const timer = setInterval(turn, 5)
  const before = process.cpuUsage()
  const began = now()
  const kept = await run()
  const { user, system } = process.cpuUsage(before)
  const clock = now() - began
  turn()
  clearInterval(timer)
  globalThis.gc()
  const bytes = process.memoryUsage().heapUsed - heap
  await end?.()
  return { time: curve.clock ? clock : (user + system) / 1000, longest, bytes, kept }
}

async function measure(n) {
  // Small amounts of work are done several times, in sum for so many.
  const times = curve.slow ? 1 : Math.max(1, Math.min(10, Math.round(least / n)))
  const all = []
  for (let i = 0; i < times; i++) {
    const { kept: _, ...measured } = await measureOnce(n)
    all.push(measured)
  }
  const middle = (member) =>
    all.map((each) => each[member]).toSorted((one, other) => one - other)[times >> 1]
  return { n, time: middle('time'), longest: middle('longest'), bytes: middle('bytes') }
}

// Timers that do not keep a process alive must fire.
setInterval(() => {}, 1000)
// Compiles what is measured.
if (!curve.slow) for (const n of [30, 300]) await measure(n)
for (const n of sizes.split(',').map(Number))
  process.stdout.write(`${JSON.stringify(await measure(n))}\n`)
// What is still open, such as streams, ends with the process.
process.exit()
