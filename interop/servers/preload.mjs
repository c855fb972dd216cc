// Preloaded in every server: records the process id, so that a check can tell whether it has exited.
import { appendFileSync } from 'node:fs'

if (process.env.INTEROP_PIDS) appendFileSync(process.env.INTEROP_PIDS, `${process.pid}\n`)
