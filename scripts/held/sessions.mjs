import { Client, fill, withServer } from './measure.mjs'

const MIB = 1024 * 1024
/** What an open response takes beside the memory that is charged, and a call in progress: docs/limits.md. */
const OPEN_RESPONSE = 8 * 1024
const CALL = 2048

/**
 * Opens what `open` opens until the memory of sessions and subscriptions is full, or there are `most`. Each takes `beside`
 * bytes that do not count there.
 */
function opened(
  open,
  { limit = 8 * MIB, most = Infinity, beside = 0, prepare = async () => {} } = {},
) {
  const limits = { retainedBytes: limit, retainedBytesPerSession: limit, sessions: 1e6 }
  return () =>
    withServer({ http: { limits, keepAlive: 200 } }, async ({ url, measure }) => {
      const client = new Client(url)
      // What is loaded by the first one does not count.
      const first = await client.initialize()
      await client.send('DELETE', { 'mcp-session-id': first })
      const context = await prepare(client)
      client.close()
      const before = await measure()
      const count = await fill((i) => open(client, i, context), { most })
      client.close()
      const retained = most === Infinity ? limit : 0
      return { count, charged: retained + count * beside, held: (await measure()) - before }
    })
}

async function session(client, i) {
  return (await client.initialize({ name: `client ${i}`, version: '1.0.0' })) !== undefined
}

/** A session whose client has its GET stream open. */
async function getStream(client) {
  const initialized = await client.initialize()
  return initialized !== undefined && (await client.listen(initialized)).status === 200
}

async function subscription(client, i, initialized) {
  const params = { uri: `note://${i}/a/note` }
  const { text } = await client.post({ id: 1, method: 'resources/subscribe', params }, initialized)
  return text.includes('"result"')
}

async function listenStream(client, i) {
  const notifications = { resourceSubscriptions: [`note://${i}/a/note`] }
  const { text } = await client.postStateless('subscriptions/listen', { notifications })
  return text.includes('acknowledged')
}

/** Without a session, until the first keep-alive. */
async function call(client) {
  const params = { name: 'wait', arguments: {} }
  return (await client.postStateless('tools/call', params)).status === 200
}

export const rows = {
  session: opened(session),
  'session with a GET stream': opened(getStream, { beside: OPEN_RESPONSE }),
  'resources/subscribe': opened(subscription, {
    limit: 4 * MIB,
    prepare: (client) => client.initialize(),
  }),
  'subscriptions/listen': opened(listenStream, { limit: MIB, beside: OPEN_RESPONSE + CALL }),
  'call in progress over HTTP': opened(call, { most: 1000, beside: OPEN_RESPONSE + CALL }),
}
