// Loaded before a program: timers of TIMERS milliseconds or more fire when it gets SIGUSR2, and else never.
const from = Number(process.env.TIMERS)
const { setTimeout: start, clearTimeout: stop } = globalThis
const held = new Map()

globalThis.setTimeout = (run, milliseconds, ...args) => {
  if (!(milliseconds >= from)) return start(run, milliseconds, ...args)
  // As any timer, it keeps the process running.
  const timer = start(() => {}, 2 ** 31 - 1)
  held.set(timer, () => run(...args))
  return timer
}
globalThis.clearTimeout = (timer) => {
  held.delete(timer)
  stop(timer)
}
process.on('SIGUSR2', () => {
  // Not those that are started meanwhile.
  const due = new Map(held)
  for (const [timer, run] of due) {
    if (!held.has(timer)) continue // an earlier one has cleared it
    clearTimeout(timer)
    run()
  }
})
