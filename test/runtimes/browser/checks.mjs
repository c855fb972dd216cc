// What a client does in a browser: run by scripts/browser.mjs in a page and in a worker, as modules and bundled.
import { connect, http, stdio } from 'ccmcp/client'
import { oauth } from 'ccmcp/oauth'

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const SENSOR = 'sensor://room'

function equal(actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (a !== b) throw new Error(`expected ${b}, got ${a}`)
}

function matches(text, pattern) {
  if (!pattern.test(text)) throw new Error(`expected ${pattern}, got ${text}`)
}

async function failure(promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('expected a rejection')
}

/** Calls a tool and returns its text. */
async function text(client, name, input, options) {
  const { content } = await client.callTool(name, input, options)
  return content[0].text
}

async function features(url, revision, control) {
  const client = await connect(http(url), {
    revision,
    elicit: () => ({ action: 'accept', content: { name: 'Ada' } }),
    reconnect: { attempts: 20, delay: 50 },
  })
  try {
    equal(client.revision, revision)
    const progress = []
    const onProgress = (each) => void progress.push(each.progress)
    equal(await text(client, 'count', { to: 3 }, { onProgress }), 'counted')
    equal(progress, [1, 2, 3])
    if (revision >= '2025-06-18') equal(await text(client, 'ask'), 'Ada')

    const controller = new AbortController()
    const started = () => controller.abort(new Error('enough'))
    const options = { signal: controller.signal, onProgress: started }
    equal((await failure(client.callTool('wait', {}, options))).message, 'enough')
    equal(await text(client, 'cancelled'), 'cancelled')

    let changed = Promise.withResolvers()
    await client.subscribe(SENSOR, (change) => changed.resolve(change))
    await text(client, 'touch')
    equal((await changed.promise).uri, SENSOR)

    changed = Promise.withResolvers()
    await control('restart')
    // The subscription is restored: by the next request at the latest.
    await text(client, 'touch')
    equal((await changed.promise).uri, SENSOR)
  } finally {
    await client.close()
  }
}

async function oldServer({ restricted }) {
  const client = await connect(http(restricted))
  equal(client.revision, '2025-11-25')
  equal(await text(client, 'count', { to: 1 }), 'counted')
  await client.close()
}

async function failures({ withoutCors, redirecting, closed }) {
  for (const target of [withoutCors, closed]) {
    const error = await failure(connect(http(target)))
    equal(
      [error.name, error.code, error.cause.code],
      ['ConnectionError', 'CONNECTION_FAILED', 'NETWORK'],
    )
    matches(
      error.message,
      /the server may be unreachable, or CORS may not allow requests from the origin http:/,
    )
  }
  const error = await failure(connect(http(redirecting)))
  equal([error.code, error.cause.code], ['CONNECTION_FAILED', 'HTTP_STATUS'])
  matches(
    error.message,
    /The server redirects, and a browser hides the target\. Connect to the final URL instead/,
  )
  const refused = await failure((async () => stdio('node', ['server.js']))())
  equal(refused.code, 'NOT_SUPPORTED')
  matches(refused.message, /cannot start a server as a child process; use http\(url\)/)
}

async function httpSse({ sse }) {
  const client = await connect(http(sse), { revision: '2024-11-05' })
  equal(await text(client, 'count', { to: 2 }), 'counted')
  equal(client.prior.transport, 'http+sse')
  await client.close()
}

/** Runs all checks: returns a line for each. */
export async function run(place) {
  if (typeof process !== 'undefined') throw new Error('there is a "process"')
  const control = async (command) => {
    const response = await fetch(`${place.page}/${command}`, { method: 'POST' })
    if (!response.ok) throw new Error(await response.text())
  }
  const checks = {
    ...Object.fromEntries(
      REVISIONS.map((revision) => [revision, () => features(place.url, revision, control)]),
    ),
    'HTTP+SSE': () => httpSse(place),
    'a server whose CORS does not allow the headers of 2026-07-28': () => oldServer(place),
    failures: () => failures(place),
  }
  const lines = []
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check()
      lines.push(`ok     ${name}`)
    } catch (error) {
      lines.push(`FAILED ${name}: ${error?.stack ?? error}`)
    }
  }
  return lines
}

/** One load of the page of the redirect flow: leaves for the authorization server, or returns who the user is. */
export async function authorize({ protectedUrl, page }) {
  const store = {
    get: (key) => localStorage.getItem(key) ?? undefined,
    set: (key, value) => localStorage.setItem(key, value),
    delete: (key) => localStorage.removeItem(key),
  }
  const authorizer = oauth({ redirectUri: `${page}/oauth`, client: { id: 'page' }, store })
  if (location.search.includes('state=')) {
    await authorizer.finish(location.href)
    history.replaceState(undefined, '', '/oauth')
  }
  try {
    const client = await connect(http(protectedUrl, { authorizer }))
    const user = await text(client, 'whoami')
    await client.close()
    return user.split(' ').at(-1) // the issuer and the name
  } catch (error) {
    if (error.code !== 'AUTHORIZATION_REQUIRED') throw error
    location.assign(error.url)
    return undefined
  }
}
