// A minimal server with the initialize handshake, for misbehaving servers to build on.
import { createInterface } from 'node:readline'

/** Calls back for each message. The process exits at end of input, unless something keeps it alive. */
export function listen(receive) {
  createInterface({ input: process.stdin }).on('line', (line) => receive(JSON.parse(line)))
}

export function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

/** The correct response to a message; undefined for a notification. */
export function answer({ id, method, params }) {
  if (id === undefined) return undefined
  switch (method) {
    case 'initialize':
      return {
        id,
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'bare', version: '1.0.0' },
        },
      }
    case 'tools/list':
      return { id, result: { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] } }
    case 'tools/call':
      return { id, result: { content: [{ type: 'text', text: params.arguments.message ?? '' }] } }
    default:
      return { id, error: { code: -32601, message: `Method not found: ${method}` } }
  }
}

/** Responds correctly. */
export function behave(message) {
  const proper = answer(message)
  if (proper !== undefined) send(proper)
}
