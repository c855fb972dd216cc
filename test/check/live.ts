import { fileURLToPath } from 'node:url'
import { LiveCheck, type LiveReport } from '../../src/check/live.js'
import { HttpConnection } from '../../src/check/http-connection.js'
import { ProcessConnection } from '../../src/check/process-connection.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { schemas } from '../capture/lines.js'

export const FAULTY = fileURLToPath(new URL('servers/faulty.mjs', import.meta.url))

export interface Checked extends LiveReport {
  /** `probe: rule` of every finding. */
  rules: string[]
  /** What all connections wrote to stderr. */
  stderr: string
}

interface Options {
  timeout?: number
  allowCalls?: boolean
  /** The probes to make, by the beginning of their names (default: all). */
  only?: readonly string[]
}

const DEFAULTS = { samples: 0, captureOf: () => undefined, schemas }

/** Checks a command. */
export async function checkCommand(
  command: readonly string[],
  { timeout = 20_000, allowCalls = false, only }: Options = {},
): Promise<Checked> {
  const connections: ProcessConnection[] = []
  const check = new LiveCheck(
    {
      transport: 'stdio',
      open(recording) {
        const connection = new ProcessConnection(command, process.env, recording, timeout)
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
export async function checkUrl(url: string): Promise<Checked> {
  const send = nodeRequest({})
  const check = new LiveCheck(
    {
      transport: 'http',
      open: (recording) => new HttpConnection(new URL(url), send, {}, recording, 20_000),
      explain: (connection) =>
        (connection instanceof HttpConnection ? connection.failure : '') ?? '',
    },
    { ...DEFAULTS, allowCalls: false, probed: () => {}, signal: new AbortController().signal },
  )
  return withRules(await check.run(), '')
}

function withRules(report: LiveReport, stderr: string): Checked {
  const rules = report.probes.flatMap(({ name, found }) =>
    found.map(({ finding }) => `${name}: ${finding.rule}`),
  )
  return { ...report, rules: [...new Set(rules)], stderr }
}
