import { spawn } from 'node:child_process'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type LogStream, logTo } from '../../src/transports/stdio-log.js'
import { statelessRequest, send } from '../http/caller.js'

/* Log lines whose reader is slow or disconnected. */

const KB = 1024
const lines = (text: string) => text.split('\n').filter((line) => line !== '')
const messageOf = (line: string) => (JSON.parse(line) as { message: string }).message
const log = (stream: LogStream) => {
  const report = logTo(stream, 'info')
  return (message: string) => report({ level: 'info', message })
}

/** A stream that accepts nothing until it is released. */
class Slow extends Writable {
  text = ''
  #waiting: (() => void) | undefined
  #open = false

  constructor() {
    super({ decodeStrings: false })
  }

  override _write(chunk: string, _: string, done: () => void): void {
    this.text += chunk
    if (this.#open) done()
    else this.#waiting = done
  }

  open(): void {
    this.#open = true
    this.#waiting?.()
  }
}

describe('a log', () => {
  it('is bounded with a slow reader, and logs how many lines were dropped', async () => {
    const stream = new Slow()
    // Both share one limit.
    const [one, other] = [log(stream), log(stream)]
    for (let n = 0; n < 2500; n++) {
      one(`${n} ${'é'.repeat(500)}`)
      other(`${n} ${'x'.repeat(KB)}`)
    }
    expect(stream.writableLength).toBeLessThan(1100 * KB)
    stream.open()
    await new Promise((resolve) => setImmediate(resolve))
    one('the last')
    await new Promise((resolve) => setImmediate(resolve))
    const came = lines(stream.text).map(messageOf)
    const notes = came.filter((message) => message.includes('dropped'))
    const kept = came.length - notes.length - 1
    expect(kept).toBeGreaterThan(800)
    expect(kept).toBeLessThan(1100)
    expect(notes).toEqual([
      `${5000 - kept} log lines were dropped: the reader of the log is too slow`,
    ])
    expect(came.at(-1)).toBe('the last')
  })

  it('survives a reader that disconnects', async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
    const write = log(stream)
    for (let n = 0; n < 10; n++) {
      write('a line')
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(stream.destroyed).toBe(true)
  })

  it('is bounded if the promise of `write` never settles', () => {
    let written = 0
    const write = log({ write: (line) => ((written += line.length), new Promise(() => {})) })
    for (let n = 0; n < 5000; n++) write('x'.repeat(KB))
    expect(written).toBeGreaterThan(1000 * KB)
    expect(written).toBeLessThan(1100 * KB)
  })

  it('logs how many lines failed as soon as one can be written', () => {
    let full = true
    const came: string[] = []
    const write = log({
      write(line) {
        if (full) throw new Error('ENOSPC')
        came.push(line)
      },
    })
    for (let n = 0; n < 3; n++) write('lost')
    full = false
    write('written')
    expect(came.map(messageOf)).toEqual([
      '3 log lines were dropped: the reader of the log is too slow',
      'written',
    ])
  })

  it('truncates long messages', () => {
    let came = ''
    const report = logTo({ write: (line) => (came += line) }, 'info')
    report({
      level: 'error',
      message: 'm'.repeat(1024 * KB),
      error: new Error('e'.repeat(1024 * KB)),
    })
    expect(came.length).toBeLessThan(32 * KB)
    expect(messageOf(came)).toMatch(/^m+… \(1048576 characters\)$/)
  })
})

describe('a server over HTTP', () => {
  const children: ReturnType<typeof spawn>[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  async function start(args: readonly string[]) {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
    const url = await new Promise<string>((resolve, reject) => {
      let text = ''
      child.stderr.on('data', function look(chunk: Buffer) {
        text += chunk.toString()
        const [, found] = /serving (\S+)\n/.exec(text) ?? []
        if (found === undefined) return
        child.stderr.off('data', look).pause()
        resolve(found)
      })
      void exited.then(() => reject(new Error(text)))
    })
    return { child, url, exited }
  }

  const dist = (name: string) => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url))

  it.each([
    [
      'ccmcp serve --http',
      [dist('cli.js'), 'serve', '--http', '--port', '0', '--log-level', 'debug'],
    ],
    ['listen', [fileURLToPath(new URL('servers/http.mjs', import.meta.url))]],
  ])('outlives the reader of its stderr: %s', async (_, args) => {
    const { child, url, exited } = await start(args)
    child.stderr.destroy()
    for (let n = 0; n < 5; n++) {
      expect((await send(`${url}/elsewhere`, { method: 'GET', headers: {} })).status).toBe(404)
      expect((await send(url, statelessRequest('tools/list'))).status).toBe(200)
    }
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  it('has bounded memory with a slow reader of its stderr', async () => {
    const { child, url } = await start([
      fileURLToPath(new URL('servers/http.mjs', import.meta.url)),
    ])
    const { text } = await send(url, statelessRequest('tools/call', { name: 'shout' }))
    const [, waiting] = /(\d+) bytes wait/.exec(text) ?? []
    expect(Number(waiting)).toBeGreaterThan(100 * KB)
    expect(Number(waiting)).toBeLessThan(1100 * KB)
    let rest = ''
    await new Promise<void>((resolve) => {
      child.stderr.on('data', (chunk: Buffer) => {
        rest += chunk.toString()
        if (rest.includes('log lines were dropped')) resolve()
      })
      child.stderr.resume()
    })
  })
})
