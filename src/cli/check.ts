import { mkdirSync } from 'node:fs'
import { type Budgets, checkBudgets } from '../check/budgets.js'
import { baselineText, readBaseline } from '../check/baseline.js'
import { captureLines } from '../check/capture-lines.js'
import { githubText } from '../check/github.js'
import { junitText } from '../check/junit.js'
import { LiveCheck, type LiveReport } from '../check/live.js'
import { checkLock, lockText, lockedKinds } from '../check/lock.js'
import { Durations } from '../check/recording.js'
import { Items } from '../check/report.js'
import { type Line, type LineOf, sarif } from '../check/sarif.js'
import { Analysis, type Row } from '../capture/analysis.js'
import { type Definitions, KIND_NAMES, type Kind } from '../capture/definitions.js'
import { SEVERITIES, type Severity } from '../capture/rules.js'
import { loadSchemaChecks } from '../capture/schema-check.js'
import type { Transport } from '../check/probes.js'
import { CaptureFile } from '../tap/capture-file.js'
import { CaptureSource } from './capture-source.js'
import { readCheckFile, writeCheckFile } from './check-files.js'
import { jsonOf, printFacts, printItems, printProbe } from './check-output.js'
import { isCapture, liveTarget } from './check-target.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError, UsageError, bytesOf, valuesOfRepeated } from './options.js'
import { escaped, print, printJson, printRaw, redacted, warn } from './print.js'
import { abortOnSignal } from './signals.js'
import { TARGET_OPTIONS, timeoutOf } from './target.js'

const DEFAULT_TIMEOUT = 10_000
/** Requests for `--p95`. */
const SAMPLES = 20
const MAX_CAPTURE = 64 * 1024 * 1024
const NAMES: Readonly<Record<Kind, string>> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  resourceTemplates: 'resource templates',
}

export const check: Command = {
  usage: 'check [CAPTURE | SERVER | -- COMMAND] [options]',
  description:
    'Reports what is wrong in a capture of "ccmcp tap"; or connects to a server, in every revision and with invalid input, and reports what it does wrong.',
  notes: `CAPTURE is a file that "ccmcp tap" wrote. SERVER is a URL, a bundled server or a module that exports one.
A listed tool is called only if it has readOnlyHint: true, or with --allow-calls.

Exit codes: 0 no finding of the severity of --fail-on or higher, 1 such findings, 2 an invalid command line or file, 3 no connection.`,
  options: {
    format: {
      value: ['text', 'json', 'junit', 'sarif', 'github'],
      description: 'format of the report (default text)',
    },
    'fail-on': {
      value: SEVERITIES,
      description: 'lowest severity that makes the check fail (default error)',
    },
    baseline: {
      value: 'FILE',
      description: 'file with the findings that are known and not reported',
    },
    'update-baseline': {
      description: 'write the findings to the baseline (default ccmcp-baseline.json)',
    },
    lock: {
      value: 'FILE',
      description: 'file with the definitions (tools, prompts, resources) that must not change',
    },
    'update-lock': {
      description: 'write the definitions to the lock file (default ccmcp-lock.json)',
    },
    'expect-tool': {
      value: 'NAME',
      repeatable: true,
      description: 'tool that must be listed; repeatable',
    },
    'max-tools-bytes': {
      value: 'BYTES',
      description: 'maximum size of the definitions of all tools',
    },
    p95: {
      value: 'MILLISECONDS',
      description: 'maximum 95th percentile of the duration of each method and tool',
    },
    'allow-calls': { description: 'also call tools that are not marked as read-only' },
    captures: {
      value: 'DIR',
      description: 'keep the capture of each connection to a server in DIR',
    },
    timeout: {
      value: 'SECONDS',
      description: 'time for a response of a server (default 10; 30 for the first)',
    },
    header: TARGET_OPTIONS.header,
    'token-env': TARGET_OPTIONS['token-env'],
    ...HELP,
  },
  positionals: [0, 1],
  takesServerCommand: true,
  run: runCheck,
}

const DEFAULT_FILES = { baseline: 'ccmcp-baseline.json', lock: 'ccmcp-lock.json' } as const

/** What was checked. */
interface Checked {
  label: string
  items: Items
  definitions: Definitions | undefined
  durations: Durations
  /** Of a capture: when it began, and whether it has the exit of the server. */
  capture?: { startedAt: number; isComplete: boolean; hasLoss: boolean }
  live?: LiveReport
}

async function runCheck(args: Arguments): Promise<void> {
  const { values, command } = args
  const [word] = args.positionals
  if (word === undefined && command === undefined)
    throw new UsageError('Missing CAPTURE or SERVER; pass a file, a URL, or a command after "--"')
  const failOn = (values.get('fail-on') ?? 'error') as Severity // checked against the option's values
  const isText = (values.get('format') ?? 'text') === 'text'
  const budgets = budgetsOf(args)
  const known = values.has('update-baseline') ? new Set<string>() : baselineOf(values)
  const lock = lockOf(values)
  const isFile = command === undefined && word !== undefined && isCapture(word)
  if (isFile) rejectLiveOptions(values)
  const checked = isFile
    ? await checkCapture(word, known)
    : await checkServer(args, word, known, budgets, isText)
  const { items, definitions, durations, live } = checked
  // A host need not list everything, or all pages.
  const incomplete = isFile ? KIND_NAMES.filter((kind) => !definitions?.isComplete(kind)) : []
  if (live?.failure === undefined) {
    const mayLackTools = incomplete.includes('tools')
    for (const found of checkBudgets(budgets, definitions, durations, mayLackTools))
      items.add(found)
    if (lock !== undefined)
      for (const found of checkLock(lock, definitions, incomplete)) items.add(found)
    warnOfIncomplete(checked, incomplete, budgets, lock)
  }
  await printReport(checked, values.get('format') ?? 'text', failOn)
  if (checked.capture?.hasLoss === true)
    warn(
      'part of the traffic was not recorded or cannot be read; findings that depend on it are left out',
    )
  if (live?.failure !== undefined)
    throw new CommandError(3, `Cannot connect to ${checked.label}: ${live.failure}`)
  update(values, checked, incomplete)
  const count = values.has('update-baseline') ? 0 : items.atLeast(failOn)
  if (count > 0)
    throw new CommandError(
      1,
      `${checked.label}: ${count} ${count === 1 ? 'finding' : 'findings'} of severity ${failOn}${failOn === 'error' ? '' : ' or higher'}`,
    )
}

function rejectLiveOptions(values: ReadonlyMap<string, string>): void {
  for (const option of ['allow-calls', 'captures', 'timeout', 'header', 'token-env'])
    if (values.has(option)) throw new UsageError(`--${option} is for a server, not for a capture`)
}

function budgetsOf({ values }: Arguments): Budgets {
  const bytes = values.get('max-tools-bytes')
  const p95 = values.get('p95')
  const limit = Number(p95)
  if (p95 !== undefined && !(p95.trim() !== '' && limit > 0 && Number.isFinite(limit)))
    throw new UsageError(`--p95 must be a number of milliseconds, not ${JSON.stringify(p95)}`)
  return {
    toolsBytes: bytes === undefined ? undefined : bytesOf('max-tools-bytes', bytes),
    p95: p95 === undefined ? undefined : limit,
    tools: valuesOfRepeated(values.get('expect-tool')),
  }
}

function baselineOf(values: ReadonlyMap<string, string>): Set<string> {
  const path = values.get('baseline')
  return path === undefined ? new Set() : readCheckFile(path, 'baseline', readBaseline)
}

/** The text of the lock file, which is read before anything is started. */
function lockOf(values: ReadonlyMap<string, string>): string | undefined {
  const path = values.get('lock')
  if (path === undefined || values.has('update-lock')) return undefined
  return readCheckFile(path, 'lock', (content) => {
    checkLock(content, undefined)
    return content
  })
}

/** Says what could not be compared, because the capture does not have the whole list. */
function warnOfIncomplete(
  { label }: Checked,
  incomplete: readonly Kind[],
  { tools }: Budgets,
  lock: string | undefined,
): void {
  const expected = new Set<Kind>(lock === undefined ? [] : lockedKinds(lock))
  if (tools.length > 0) expected.add('tools')
  const kinds = incomplete.filter((kind) => expected.has(kind))
  if (kinds.length > 0)
    warn(
      `${label} does not contain the complete list of ${namesOf(kinds)}; missing ones are not reported. Check the server itself, or a capture in which the host lists everything`,
    )
}

function namesOf(kinds: readonly Kind[]): string {
  return kinds.map((kind) => NAMES[kind]).join(', ')
}

function update(
  values: ReadonlyMap<string, string>,
  { label, items, definitions }: Checked,
  incomplete: readonly Kind[],
): void {
  if (values.has('update-baseline'))
    writeCheckFile(
      values.get('baseline') ?? DEFAULT_FILES.baseline,
      baselineText(items.list, redacted),
    )
  if (!values.has('update-lock')) return
  writeCheckFile(values.get('lock') ?? DEFAULT_FILES.lock, lockText(definitions))
  const partial = incomplete.filter((kind) => definitions?.listing(kind) !== undefined)
  if (partial.length > 0)
    warn(
      `${label} does not contain the complete list of ${namesOf(partial)}; the lock file contains only those that were listed`,
    )
}

async function checkCapture(path: string, known: ReadonlySet<string>): Promise<Checked> {
  const analysis = new Analysis(await loadSchemaChecks())
  const source = new CaptureSource(path)
  const items = new Items(known, false)
  const durations = new Durations()
  const add = (rows: readonly Row[]) => {
    for (const row of rows) {
      durations.add(row)
      for (const finding of row.findings) items.add({ row, finding }, undefined, path)
    }
  }
  for (const record of source.records()) {
    if (record === undefined) break
    add(analysis.add(record))
  }
  for (const record of source.end()) add(analysis.add(record))
  add(analysis.end())
  const { startedAt } = source
  return {
    label: path,
    items,
    definitions: analysis.definitions,
    durations,
    capture: { startedAt, isComplete: analysis.hasExited, hasLoss: analysis.hasLoss },
  }
}

async function checkServer(
  args: Arguments,
  word: string | undefined,
  known: ReadonlySet<string>,
  { p95 }: Budgets,
  isText: boolean,
): Promise<Checked> {
  const { values } = args
  const target = liveTarget(args, word, timeoutOf(args) ?? DEFAULT_TIMEOUT)
  const folder = values.get('captures')
  const schemas = await loadSchemaChecks()
  const items = new Items(known, true)
  let live: LiveReport | undefined
  await abortOnSignal(async (signal) => {
    live = await new LiveCheck(target, {
      schemas,
      allowCalls: values.has('allow-calls'),
      samples: p95 === undefined ? 0 : SAMPLES,
      captureOf: (probe) =>
        folder === undefined ? undefined : captureIn(folder, probe, target.transport),
      signal,
      probed(result) {
        for (const found of result.found) items.add(found, result.name, result.capture)
        if (isText) printProbe(result)
      },
    }).run()
  })
  if (live === undefined) throw new CommandError(3, 'Interrupted') // not reached: abortOnSignal has thrown
  const { definitions, durations } = live
  return { label: target.label, items, definitions, durations, live }
}

function captureIn(folder: string, probe: string, transport: Transport): CaptureFile {
  const name = probe.replaceAll(/[^\w.-]+/g, '-')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return new CaptureFile(`${folder}/${name}.ndjson`, {
    maxBytes: MAX_CAPTURE,
    transport: transport === 'stdio' ? 'stdio' : 'http',
    failed: ({ message }) => warn(`cannot write the capture: ${message}`),
  })
}

async function printReport(checked: Checked, format: string, failOn: Severity): Promise<void> {
  const { label, items, capture, live } = checked
  if (format === 'json') return printJson(jsonOf(checked))
  if (format === 'sarif') return printJson(sarif(items.list, await linesOf(items)))
  if (format === 'github')
    return printRaw(redacted(escaped(githubText(items.list, await linesOf(items)))))
  if (format === 'junit') {
    const names = live?.probes.map(({ name, milliseconds }) => ({ name, milliseconds }))
    const cases = [...(names ?? []), { name: undefined, milliseconds: 0 }].map(
      ({ name, milliseconds }) => ({
        name: name ?? (live === undefined ? 'capture' : 'definitions and budgets'),
        milliseconds,
        items: items.list.filter(({ probe }) => probe === name),
      }),
    )
    return printRaw(junitText(label, cases, failOn, redacted))
  }
  printItems(items.list, capture?.startedAt)
  printFacts(checked)
  const { error, warning, info } = items.counts
  const rest = items.known === 0 ? '' : `, known: ${items.known}`
  print(`errors: ${error}, warnings: ${warning}, info: ${info}${rest}\n`)
  if (capture?.isComplete === false)
    warn('the capture is incomplete: it is still being written, or its writer was killed')
}

async function linesOf({ list }: Items): Promise<LineOf> {
  const lines = new Map<unknown, Line>()
  for (const path of new Set(list.map(({ capture }) => capture)))
    if (path !== undefined)
      for (const [item, line] of await captureLines(path, list)) lines.set(item, line)
  return (item) => lines.get(item)
}
