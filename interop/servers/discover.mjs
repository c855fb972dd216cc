// Responds to server/discover with the first argument (JSON: a result or an error) after the second
// argument in milliseconds. Otherwise supports only the initialize handshake.
import { behave, listen, send } from './bare.mjs'

const reply = JSON.parse(process.argv[2])
const delay = Number(process.argv[3] ?? 0)
listen((message) => {
  if (message.method !== 'server/discover') return behave(message)
  setTimeout(() => send({ id: message.id, ...reply }), delay).unref()
})
