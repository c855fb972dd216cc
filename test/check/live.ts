import { fileURLToPath } from 'node:url'
import { LiveCheck, type LiveOptions, type LiveReport } from '../../src/check/live.js'
import { httpTarget } from '../../src/check/http-target.js'
import { ProcessConnection } from '../../src/check/process-connection.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { schemas } from '../capture/lines.js'

export const FAULTY = fileURLToPath(new URL('servers/faulty.mjs', import.meta.url))

export interface Checked extends LiveReport {
  /** `probe: rule` of every finding, except that of a slow start, which the machine may be to blame for. */
  rules: string[]
  /** What all connections wrote to stderr. */
  stderr: string
}

interface Options {
  /** Of all connections except the first, on which nothing is to time out. */
  timeout?: number
  allowCalls?: boolean
  /** The probes to make, by the beginning of their names (default: all). */
  only?: readonly string[]
  /** The capture of a probe, over HTTP (default: none). */
  captureOf?: LiveOptions['captureOf']
}

const TIMEOUT = 20_000
const DEFAULTS = { samples: 0, captureOf: () => undefined, schemas }

/** Checks a command. */
export async function checkCommand(
  command: readonly string[],
  { timeout = TIMEOUT, allowCalls = false, only }: Options = {},
): Promise<Checked> {
  const connections: ProcessConnection[] = []
  const check = new LiveCheck(
    {
      transport: 'stdio',
      open(recording) {
        const limit = connections.length === 0 ? TIMEOUT : timeout
        const connection = new ProcessConnection(command, process.env, recording, limit)
        connections.push(connection)
        return connection
      },
      explain: ({ ended = '' }) => ended,
    },
    {
      ...DEFAULTS,
      allowCalls,
      probed: () => {},
      selects: (probe) => only?.some((name) => probe.startsWith(name)) ?? true,
      signal: new AbortController().signal,
    },
  )
  const report = await check.run()
  return withRules(report, connections.map(({ stderr }) => stderr).join(''))
}

/** Checks a URL. */
export async function checkUrl(
  url: string,
  { only, captureOf = DEFAULTS.captureOf }: Options = {},
): Promise<Checked> {
  const target = httpTarget({
    url: new URL(url),
    request: nodeRequest({}),
    prepare: (send) => send,
    headers: {},
    timeout: TIMEOUT,
    explain: ({ message }) => message,
  })
  const check = new LiveCheck(target, {
    ...DEFAULTS,
    captureOf,
    allowCalls: false,
    probed: () => {},
    selects: (probe) => only?.some((name) => probe.startsWith(name)) ?? true,
    signal: new AbortController().signal,
  })
  return withRules(await check.run(), '')
}

function withRules(report: LiveReport, stderr: string): Checked {
  const rules = report.probes.flatMap(({ name, found }) =>
    found.flatMap(({ finding: { rule } }) => (rule === 'slow-start' ? [] : `${name}: ${rule}`)),
  )
  return { ...report, rules: [...new Set(rules)], stderr }
}
