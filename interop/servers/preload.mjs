// Loaded before every server: writes down its process id, so that a check can see whether the process is gone.
import { appendFileSync } from 'node:fs'

if (process.env.INTEROP_PIDS) appendFileSync(process.env.INTEROP_PIDS, `${process.pid}\n`)
