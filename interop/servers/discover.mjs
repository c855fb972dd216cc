// Answers the probe with what the first argument says (JSON: a result or an error), after as many
// milliseconds as the second says. Knows only the handshake otherwise.
import { behave, listen, send } from './bare.mjs'

const reply = JSON.parse(process.argv[2])
const delay = Number(process.argv[3] ?? 0)
listen((message) => {
  if (message.method !== 'server/discover') return behave(message)
  setTimeout(() => send({ id: message.id, ...reply }), delay).unref()
})
