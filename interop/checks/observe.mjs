// Our client with recorded messages.
import { connect, stdio } from '../../dist/client.js'

/** Long timeouts, so that a slow machine does not change the negotiated revision. */
export const UNHURRIED = { probeTimeout: 10_000 }

/** A target that records its messages. */
export function observe(t, args, { command = process.execPath, ...options } = {}) {
  const seen = { log: '', out: [], sent: [], reports: [] }
  const target = stdio(command, args, {
    env: t.env,
    stderr: (text) => (seen.log += text),
    ...options,
  })
  const settings = {
    tap({ direction, frame }) {
      if (direction === 'in') return
      const message = JSON.parse(frame)
      seen.sent.push(message)
      seen.out.push(message.method)
    },
    report: (report) => seen.reports.push(report),
  }
  return {
    seen,
    async connect(more) {
      const client = await connect(target, { ...settings, ...more })
      t.defer(() => client.close())
      return client
    },
  }
}

export const textOf = ({ content }) => content.map(({ text }) => text).join('\n')

export async function listOf(client) {
  const tools = []
  for await (const tool of client.tools()) tools.push(tool)
  return tools
}
