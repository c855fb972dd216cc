// Restarts three processes behind nginx, one after the other, while clients call, answer questions and listen: nothing
// may be lost.
// Needs redis-server and nginx.
//
//   node scripts/rolling-restart.mjs [ROUNDS [SESSIONS [STREAMS]]]     3, 1000 and 200 by default
//   VERBOSE=1 shows the logs of the processes, and keeps the folder with that of nginx.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { connect, http } from '../dist/client.js'
import { freePort } from './free-port.mjs'

const [rounds = 3, sessions = 1000, streams = 200] = process.argv.slice(2).map(Number)
const here = dirname(fileURLToPath(import.meta.url))
const PROCESSES = 3
/** Calls per second of all clients together, at most. */
const CALL_RATE = 80
/** Milliseconds between two calls of one client, and between two changes. */
const CALL_INTERVAL = Math.max(1000, ((sessions + streams) * 1000) / CALL_RATE)
const CHANGE_INTERVAL = 250
/** Each listener listens to one of these, and to the list of tools. */
const NOTES = Math.max(1, Math.min(40, Math.round((sessions + streams) / 5)))
const TOOLS = 'note://tools'
/** How many clients connect at the same time. */
const CONNECTING = 20
/** Milliseconds in which every listener must have read the newest contents. */
const PATIENCE = 60_000
const LONGEST_CALL = 120_000
/** One of so many calls asks its client, who answers after this many milliseconds, at least and at most. */
const QUESTIONS = 4
const ANSWERED_AFTER = [500, 3000]

const folder = await mkdtemp(join(tmpdir(), 'ccmcp-rolling-'))
const children = []
const failures = new Map()
const counts = {
  calls: 0,
  reads: 0,
  questions: 0,
  carried: 0,
  changes: 0,
  unavailable: 0,
  reconnects: 0,
  missed: 0,
}
const delay = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const stop = new AbortController()

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
process.on('exit', () => {
  for (const child of children) child.kill()
})

function fail(what) {
  failures.set(what, (failures.get(what) ?? 0) + 1)
  if (failures.get(what) === 1) console.error(`failed: ${what}`)
}

/** Starts a program, and waits until its output contains a text. */
async function start(program, args, ready, env = {}) {
  const child = spawn(program, args, {
    // Warnings are expected. What must not happen is seen by the clients.
    stdio: ['ignore', 'pipe', process.env.VERBOSE === undefined ? 'ignore' : 'inherit'],
    env: { ...process.env, ...env },
  })
  children.push(child)
  const ended = Promise.race([
    once(child, 'error').then(([error]) => Promise.reject(error)),
    once(child, 'exit').then(() => Promise.reject(new Error(`${program} has ended`))),
  ])
  ended.catch(() => {})
  for (let output = ''; !output.includes(ready);)
    output += (await Promise.race([once(child.stdout, 'data'), ended]))[0]
  child.stdout.resume()
  return child
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

/** As docs/deploying.md recommends it. `down` is the port of a process that gets no new connections. */
const nginxConf = (port, ports, version, down) => `
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.log error;
events { worker_connections 8192; }
http {
    access_log off;
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;

    # A reload closes idle connections, perhaps when a client has sent a request.
    keepalive_timeout 0;

    upstream mcp {
${ports.map((each) => `        server 127.0.0.1:${each} max_fails=0${each === down ? ' down' : ''};`).join('\n')}
    }

    server {
        listen 127.0.0.1:${port};
        client_max_body_size 4m;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        proxy_read_timeout 60s;
        proxy_next_upstream error;

        location / {
            proxy_pass http://mcp;
            proxy_intercept_errors on;
            error_page 503 = @again;
        }

        location @again { proxy_pass http://mcp; }
        location = /version { return 200 "${version}"; }
    }
}`

/** Counts what may not happen, and repeats what was not served. */
async function countingFetch(url, init) {
  for (;;) {
    const response = await fetch(url, init)
    if (response.ok || response.status === 405) return response
    const after = Number(response.headers.get('retry-after') ?? Number.NaN)
    if (response.status !== 503 || !(after >= 0)) {
      fail(
        `${init?.method ?? 'GET'} got ${response.status}${response.status === 503 ? ' without Retry-After' : ''}`,
      )
      return response
    }
    counts.unavailable++
    await response.body?.cancel()
    await delay(after * 1000)
  }
}

/** The processes in which calls wait for an answer, once for each question. */
const waiting = []

/** The answer of a user, who takes a while. */
async function answer(message) {
  const { number, pid } = JSON.parse(message)
  if (pid !== undefined) waiting.push(pid)
  const [least, most] = ANSWERED_AFTER
  await delay(least + Math.random() * (most - least))
  if (pid !== undefined) waiting.splice(waiting.indexOf(pid), 1)
  return { action: 'accept', content: { number } }
}

/** What is listened to, as one client knows it. */
class Listener {
  /** The newest number that was read, by URI. */
  known = new Map()
  longest = 0
  calls = 0
  #reading = new Map()
  #read
  #call

  constructor(name, uri, { read, call }) {
    this.name = name
    this.uri = uri
    this.#read = read
    this.#call = call
  }

  /** It was told of a change: reads the contents, again if there is another change meanwhile. */
  async changed(uri) {
    if (this.#reading.has(uri)) return void this.#reading.set(uri, true)
    do {
      this.#reading.set(uri, false)
      await this.#attempt('read', async () => {
        const number = Number(await this.#read(uri))
        counts.reads++
        if (number < (this.known.get(uri) ?? 0)) fail('an older content was read after a newer one')
        this.known.set(uri, number)
      })
    } while (this.#reading.get(uri))
    this.#reading.delete(uri)
  }

  /** Calls at a steady rate, beginning at a random time. */
  async run() {
    await delay(Math.random() * CALL_INTERVAL)
    while (!stop.signal.aborted) {
      const number = ++this.calls
      await this.#attempt('call', async () => {
        const tool = number % QUESTIONS === 0 ? 'question' : 'echo'
        const result = await this.#call(tool, number)
        counts.calls++
        if (tool === 'question') counts.questions++
        if (result !== String(number)) fail(`a call got the result of another: ${result}`)
      })
      await delay(CALL_INTERVAL)
    }
  }

  async #attempt(kind, action) {
    const begun = performance.now()
    try {
      await action()
    } catch (error) {
      if (!this.closed) fail(`a ${kind} of ${this.name} failed: ${error.message}`)
    }
    this.longest = Math.max(this.longest, performance.now() - begun)
  }
}

const textOf = ({ content }) => content[0].text

async function officialListener(url, uri) {
  const info = { name: 'official', version: '1.0.0' }
  const client = new Client(info, { capabilities: { elicitation: {} } })
  const options = { timeout: LONGEST_CALL }
  const listener = new Listener('an official client', uri, {
    read: async (what) => (await client.readResource({ uri: what }, options)).contents[0].text,
    call: async (name, number) =>
      textOf(
        await client.callTool({ name, arguments: { number, waits: true } }, undefined, options),
      ),
  })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    void listener.changed(params.uri)
  })
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    void listener.changed(TOOLS)
  })
  let opened = 0
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    async fetch(target, init) {
      const response = await countingFetch(target, init)
      if (init?.method === 'GET' && opened++ > 0) counts.reconnects++
      return response
    },
  })
  await client.connect(transport, options)
  await client.subscribeResource({ uri }, options)
  listener.close = () => client.close()
  return listener
}

async function ownListener(url, uri) {
  const client = await connect(http(url, { fetch: countingFetch }), {
    revision: '2026-07-28',
    elicit: ({ message }) => answer(message),
  })
  const listener = new Listener('a client of ours', uri, {
    read: async (what) => (await client.readResource(what, { fresh: true })).contents[0].text,
    call: async (name, number) => textOf(await client.callTool(name, { number, waits: false })),
  })
  const heard =
    (what) =>
    ({ missed }) => {
      if (missed && what === TOOLS) counts.missed++
      void listener.changed(what)
    }
  client.on('unsubscribed', ({ error }) => fail(`a subscription was ended: ${error.message}`))
  await Promise.all([client.subscribe(uri, heard(uri)), client.watch('tools', heard(TOOLS))])
  listener.close = () => client.close()
  return listener
}

async function connectAll(make, count, url, notes) {
  const made = []
  let next = 0
  const worker = async () => {
    while (next < count) {
      const index = next++
      made.push(await make(url, notes[index % notes.length]))
    }
  }
  await Promise.all(Array.from({ length: CONNECTING }, worker))
  return made
}

/** Publishes changes while it is not paused; `newest` has the number of each. */
class Publisher {
  newest = new Map()
  #client
  #notes
  #running

  constructor(client, notes) {
    this.#client = client
    this.#notes = notes
  }

  start() {
    this.paused = false
    this.#running = this.#run()
  }

  async pause() {
    this.paused = true
    await this.#running
  }

  async #run() {
    while (!this.paused) {
      // The list of tools concerns every listener, so it changes less often.
      const isList = Math.random() * this.#notes.length < 1
      const uri = isList ? TOOLS : this.#notes[Math.floor(Math.random() * this.#notes.length)]
      try {
        const number = Number(textOf(await this.#client.callTool('change', { uri })))
        counts.changes++
        if (number <= (this.newest.get(uri) ?? 0)) fail('a change got an old number')
        this.newest.set(uri, number)
      } catch (error) {
        fail(`a change failed: ${error.message}`)
      }
      await delay(CHANGE_INTERVAL)
    }
  }
}

/** Waits until every listener has been told of the newest changes, and has read them. */
async function settle(listeners, { newest }) {
  const isLate = ({ known, uri }) =>
    [uri, TOOLS].some((each) => (known.get(each) ?? 0) < (newest.get(each) ?? 0))
  const since = performance.now()
  let late = listeners
  for (;;) {
    late = late.filter(isLate)
    if (late.length === 0) return
    if (performance.now() - since > PATIENCE) break
    await delay(50)
  }
  for (const { name } of late) fail(`a change was lost for ${name}`)
}

/** nginx in front of processes. */
class LoadBalancer {
  #port
  #ports
  #version = 0
  #child
  #file = join(folder, 'nginx.conf')

  constructor(port, ports) {
    this.#port = port
    this.#ports = ports
  }

  async start() {
    for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'])
      await mkdir(join(folder, name))
    await this.#write()
    const log = join(folder, 'nginx.log')
    this.#child = await start('nginx', ['-c', this.#file, '-p', folder, '-e', log], '')
    await this.#loaded()
  }

  /** All processes but one, or all. */
  async useAllBut(down) {
    await this.#write(down)
    this.#child.kill('SIGHUP')
    await this.#loaded()
  }

  #write(down) {
    return writeFile(this.#file, nginxConf(this.#port, this.#ports, ++this.#version, down))
  }

  async #loaded() {
    for (let attempt = 0; attempt < 500; attempt++) {
      const found = await fetch(`http://127.0.0.1:${this.#port}/version`).catch(() => undefined)
      if ((await found?.text()) === String(this.#version)) return
      await delay(20)
    }
    throw new Error('nginx has not loaded its configuration')
  }
}

function percentile(values, share) {
  const sorted = values.toSorted((one, other) => one - other)
  return `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))])} ms`
}

function print(rows) {
  for (const [name, value] of rows) console.log(`${name.padEnd(62)} ${value}`)
}

async function run() {
  const [redisPort, port, ...ports] = await Promise.all(
    Array.from({ length: PROCESSES + 2 }, freePort),
  )
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
  const place = ['--port', String(redisPort), '--bind', '127.0.0.1', '--dir', folder]
  await start('redis-server', [...place, ...durable], 'Ready to accept connections')
  const program = join(here, 'rolling-restart-server.mjs')
  const serve = (own) =>
    start(process.execPath, [program], '/mcp', {
      PORT: String(own),
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    })
  const processes = await Promise.all(ports.map(serve))
  const nginx = new LoadBalancer(port, ports)
  await nginx.start()

  const url = `http://127.0.0.1:${port}/mcp`
  const notes = Array.from({ length: NOTES }, (_, index) => `note://${index}`)
  const listeners = [
    ...(await connectAll(officialListener, sessions, url, notes)),
    ...(await connectAll(ownListener, streams, url, notes)),
  ]
  console.log(`${sessions} sessions and ${streams} streams are open`)
  const writer = await connect(http(url, { fetch: countingFetch }), { revision: '2026-07-28' })
  const publisher = new Publisher(writer, notes)
  const running = listeners.map((listener) => listener.run())
  const begun = performance.now()
  for (let round = 1; round <= rounds; round++) {
    for (const [index, own] of ports.entries()) {
      publisher.start()
      await delay(1000)
      await nginx.useAllBut(own)
      counts.carried += waiting.filter((pid) => pid === processes[index].pid).length
      await end(processes[index])
      processes[index] = await serve(own)
      await nginx.useAllBut(undefined)
      await delay(1000)
      await publisher.pause()
      await settle(listeners, publisher)
    }
    const seconds = Math.round((performance.now() - begun) / 1000)
    console.log(
      `round ${round}: all processes were restarted (${seconds} s, ${counts.calls} calls)`,
    )
  }
  stop.abort()
  await Promise.all(running)
  for (const listener of listeners) listener.closed = true
  await Promise.all([writer.close(), ...listeners.map((listener) => listener.close())])
  if (counts.carried === 0) fail('no call waited for an answer when its process was told to end')
  const longest = listeners.map((listener) => listener.longest)
  print([
    ['restarts', rounds * PROCESSES],
    ['calls', counts.calls],
    ['calls with a question, answered', counts.questions],
    ['calls that waited for it when their process was told to end', counts.carried],
    ['responses 503 with Retry-After, repeated', counts.unavailable],
    ['longest call of each client: p50', percentile(longest, 0.5)],
    ['longest call of each client: p99', percentile(longest, 0.99)],
    ['changes', counts.changes],
    ['contents read after a change', counts.reads],
    ['GET streams opened again', counts.reconnects],
    ['listen streams opened again', counts.missed],
  ])
}

try {
  await run()
} catch (error) {
  const missing = error.code === 'ENOENT' ? ': install redis-server and nginx' : ''
  fail(`${error.message}${missing}`)
} finally {
  // Redis, which was started first, is needed until the others have ended.
  const [redis, ...others] = children
  await Promise.all(others.map(end))
  if (redis !== undefined) await end(redis)
  if (process.env.VERBOSE === undefined) await rm(folder, { recursive: true, force: true })
  else console.log(folder)
}
for (const [what, count] of failures) console.error(`${count} × ${what}`)
console.log(failures.size === 0 ? 'passed' : 'FAILED')
process.exit(failures.size === 0 ? 0 : 1)
