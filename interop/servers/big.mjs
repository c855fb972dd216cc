// Returns a result of the requested number of megabytes.
import { behave, listen, send } from './bare.mjs'

listen((message) => {
  const { id, method, params } = message
  if (method !== 'tools/call' || params.name !== 'big') return behave(message)
  const text = 'ä"\\n😀 0123456789'
  const times = Math.ceil((params.arguments.megabytes * 1e6) / Buffer.byteLength(text))
  send({ id, result: { content: [{ type: 'text', text: text.repeat(times) }] } })
})
