// Our client, watched.
import { connect, stdio } from '../../dist/client.js'

/** A slow machine must not decide which revision is reached. */
export const UNHURRIED = { probeTimeout: 10_000 }

/** A server to connect to, and what has passed between it and us. */
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
