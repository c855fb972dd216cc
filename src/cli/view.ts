import { setTimeout as delay } from 'node:timers/promises'
import { Analysis, type Row } from '../capture/analysis.js'
import { parseFilter } from '../capture/filter.js'
import type { CaptureRecord } from '../capture/format.js'
import { loadSchemaChecks } from '../capture/schema-check.js'
import { captureFolder, newestCapture } from '../tap/captures.js'
import { CaptureSource } from './capture-source.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError, UsageError } from './options.js'
import { print, styled, warn } from './print.js'
import { findingPieces, rowPieces } from './rows.js'

/** Milliseconds between looks at a file that is followed. */
const POLL = 100

export const view: Command = {
  usage: 'view [CAPTURE] [options]',
  description:
    'Shows a capture of "ccmcp tap": a line for each message, and what is wrong with it. Default: the newest capture.',
  notes: `--filter takes terms that must all match; "-" before a term negates it, "*" stands for any text:

  method:tools/call tool:add dir:in status:error kind:response id:3 rev:2025* finding:error dur>100ms size>1kb word

dir:in is from the client to the server, dir:out from the server to the client.`,
  options: {
    follow: { short: 'f', description: 'keep showing what is recorded (also -f)' },
    filter: { value: 'EXPRESSION', description: 'show only matching lines' },
    web: {
      description: 'show it on a page in the browser: prints the URL, runs until it is ended',
    },
    open: { description: 'with --web: open the browser' },
    ...HELP,
  },
  positionals: [0, 1],
  run: runView,
}

async function runView({ values, positionals: [path] }: Arguments): Promise<void> {
  const matches = filterOf(values.get('filter') ?? '')
  if (values.has('open') && !values.has('web')) throw new UsageError('--open needs --web')
  process.stdout.on('error', () => (output.isOpen = false))
  const follow = values.has('follow')
  const first = path ?? newestCapture(captureFolder())
  if (first === undefined && !follow)
    throw new CommandError(
      1,
      `There is no capture in ${captureFolder()}; record one with "ccmcp tap -- COMMAND"`,
    )
  if (values.has('web')) {
    const { viewWeb } = await import('./view-web.js')
    return await viewWeb(values, first, path === undefined)
  }
  const schemas = await loadSchemaChecks()
  // Without a name, each newer capture is followed.
  for (let file = first; output.isOpen;) {
    if (file !== undefined) {
      const shown = new ShownCapture(file, new Analysis(schemas), matches)
      const isLast = () => path !== undefined || newestCapture(captureFolder()) === file
      await shown.show(follow ? isLast : undefined)
      if (path !== undefined || !follow) return
    } else await delay(POLL)
    const newest = newestCapture(captureFolder())
    if (newest === file) await delay(POLL)
    else file = newest
  }
}

function filterOf(text: string): (row: Row) => boolean {
  try {
    return parseFilter(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new UsageError(`--filter: ${error.message}`)
    throw error
  }
}

/** Whether somebody reads stdout. The stream itself forgets its error. */
const output = { isOpen: true }

/** Waits until what was printed is read, or nobody reads any more. */
async function outputRead(): Promise<void> {
  const { stdout } = process
  if (!stdout.writableNeedDrain || !output.isOpen) return
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const event of ['drain', 'close', 'error']) stdout.off(event, done)
      resolve()
    }
    for (const event of ['drain', 'close', 'error']) stdout.on(event, done)
  })
}

class ShownCapture {
  readonly #path: string
  readonly #analysis: Analysis
  readonly #matches: (row: Row) => boolean
  readonly #source: CaptureSource
  #messages = 0
  readonly #findings = { error: 0, warning: 0, info: 0 }

  constructor(path: string, analysis: Analysis, matches: (row: Row) => boolean) {
    this.#path = path
    this.#source = new CaptureSource(path)
    this.#analysis = analysis
    this.#matches = matches
  }

  /** Shows the file; with `follow`, until the server has exited or the function returns false. */
  async show(follow?: () => boolean): Promise<void> {
    let isFirst = true
    for (const record of this.#source.records()) {
      if (!output.isOpen) return
      if (record !== undefined) {
        if (isFirst) print(styled('heading', this.#path), '\n')
        isFirst = false
        await this.#show(record)
      } else if (follow?.() !== true || this.#analysis.hasExited) break
      else await delay(POLL)
    }
    for (const record of this.#source.end()) await this.#show(record)
    this.#print(this.#analysis.end())
    this.#summary()
  }

  async #show(record: CaptureRecord): Promise<void> {
    this.#print(this.#analysis.add(record))
    await outputRead()
  }

  #print(rows: readonly Row[]): void {
    for (const row of rows) {
      if (row.kind !== 'event' && row.kind !== 'unanswered') this.#messages++
      for (const { severity } of row.findings) this.#findings[severity]++
      if (!this.#matches(row)) continue
      print(...rowPieces(row, this.#source.startedAt), ...row.findings.flatMap(findingPieces))
    }
  }

  #summary(): void {
    const { error, warning, info } = this.#findings
    print(
      styled(
        'detail',
        `${count(this.#messages, 'frame')}, ${count(error, 'error')}, ${count(warning, 'warning')}, ${info} info\n`,
      ),
    )
    if (!this.#analysis.hasExited)
      warn('the capture is incomplete: it is still being written, or its writer was killed')
    if (this.#source.unreadable > 0)
      warn(`damaged lines of the capture that were skipped: ${this.#source.unreadable}`)
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
