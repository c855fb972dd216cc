// A library that the server uses. It writes to stdout, which carries the messages of MCP.
import { setTimeout as delay } from 'node:timers/promises'

const MILLISECONDS = Number(process.env.DEMO_PACE ?? 250)

/** Packs photos one by one; an aborted signal ends it. */
export async function* pack(photos, signal) {
  for (let n = 1; n <= photos; n++) {
    await delay(MILLISECONDS, undefined, { signal })
    console.log(`photo ${n} packed`)
    yield n
  }
}
