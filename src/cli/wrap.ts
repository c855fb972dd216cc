import { realpathSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { LockFile } from '../bundled/lock-file.js'
import { type Plan, type Request, applyPlan, planChange } from '../hosts/change.js'
import { ConfigFileError } from '../hosts/config-file.js'
import { type ConfigPlace, HOST_NAMES, placesOf } from '../hosts/hosts.js'
import { recordFolder } from '../hosts/wrap-records.js'
import { isToolError } from '../server/tool-error.js'
import { VERSION } from '../version.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError, type Options, UsageError, suggestion } from './options.js'
import { escaped, escapedLine, print, warn } from './print.js'

/** Milliseconds after which the lock of a killed process is removed, and to wait for that of another. */
const STALE = 10_000
const LOCK_TIMEOUT = 30_000

const OPTIONS = {
  host: { value: 'HOST', description: 'the host, or the path of its configuration file' },
  all: { description: 'all servers of the host' },
  'dry-run': { description: 'only show what would be changed, as a diff' },
  ...HELP,
} as const satisfies Options

const NOTES = `HOST is one of ${HOST_NAMES.slice(0, 8).join(', ')},
${HOST_NAMES.slice(8).join(', ')}, or the path of a configuration file (JSON, TOML or YAML).
The configuration of the project in the working directory comes before that of the user.

  ccmcp wrap github --host claude-code
  ccmcp view -f                          after the host was restarted
  ccmcp unwrap --all --host claude-code`

export const wrap: Command = {
  usage: 'wrap [NAME…] --host HOST [options]',
  description:
    'Puts "ccmcp tap" before the commands of servers in the configuration of a host, so that all that they send and receive is recorded.',
  notes: NOTES,
  options: OPTIONS,
  positionals: [0, Infinity],
  run: (parsed) => change('wrap', parsed),
}

export const unwrap: Command = {
  usage: 'unwrap [NAME…] --host HOST [options]',
  description:
    'Takes "ccmcp tap" out of the configuration of a host. The rest of the file stays as it is; commands get the text that they had.',
  notes: NOTES,
  options: OPTIONS,
  positionals: [0, Infinity],
  run: (parsed) => change('unwrap', parsed),
}

async function change(
  action: Request['action'],
  { values, positionals }: Arguments,
): Promise<void> {
  const host = values.get('host')
  if (host === undefined)
    throw new UsageError(`Missing --host: ${HOST_NAMES.join(', ')}, or the path of a file`)
  const places = placesOf(host)
  if (places === undefined)
    throw new UsageError(`Unknown host ${JSON.stringify(host)}${hostHint(host)}`)
  const all = values.has('all')
  if (all && positionals.length > 0) throw new UsageError('Pass names or --all, not both')
  const request = { action, words: tapCommand(), records: recordFolder() }
  const names = all ? undefined : new Set(positionals)
  const planned = await planAll(host, places, { ...request, names })
  if (values.has('dry-run')) {
    // Also in a pipe, which may end in a terminal: the file may be that of somebody else's project.
    for (const { plan } of planned) print(escaped(plan.diff))
    for (const { plan } of planned) report(action, plan, 'would be ')
    return
  }
  await locked(request.records, async () => {
    for (const { place, plan } of planned) {
      // Two places may be in the same file, and it may have changed while the lock was waited for.
      const again = await plannedFor(place, { ...request, names: new Set(plan.changed) })
      if (again === undefined) continue
      await inFile(place, () => applyPlan(again))
      report(action, { ...again, unchanged: [...plan.unchanged, ...again.unchanged] }, '')
    }
  })
  if (action === 'wrap' && planned.some(({ plan }) => plan.changed.length > 0))
    print('Restart the host; "ccmcp view -f" then shows what is recorded.\n')
}

/** The hosts that may have been meant: by the beginning of their names, such as "claude", or a similar name. */
function hostHint(host: string): string {
  const named = HOST_NAMES.filter((name) => name.startsWith(`${host}-`))
  return named.length === 0 ? suggestion(host, HOST_NAMES) : `; did you mean ${named.join(' or ')}?`
}

/** How to start the tap of this program from anywhere. */
function tapCommand(): string[] {
  const program = realpathSync(process.argv[1] ?? '')
  // The folder of npx is temporary.
  return /[\\/]_npx[\\/]/.test(program)
    ? ['npx', '-y', `ccmcp@${VERSION}`, 'tap', '--']
    : [process.execPath, program, 'tap', '--']
}

interface Planned {
  place: ConfigPlace
  plan: Plan
}

/** Plans the changes of all files, before any is written. A name is changed where it is found first. */
async function planAll(
  host: string,
  places: readonly ConfigPlace[],
  request: Request,
): Promise<Planned[]> {
  const missing = request.names === undefined ? undefined : new Set(request.names)
  const planned: Planned[] = []
  for (const place of places) {
    const plan = await plannedFor(place, { ...request, names: missing && new Set(missing) })
    if (plan === undefined) continue
    planned.push({ place, plan })
    for (const name of plan.names) missing?.delete(name)
  }
  if (planned.length === 0)
    throw new CommandError(
      1,
      `There is no configuration of ${escapedLine(host)}: ${listOf(new Set(places.map(({ path }) => path)))}`,
    )
  const known = new Set(planned.flatMap(({ plan }) => plan.names))
  const paths = listOf(new Set(planned.map(({ place }) => place.path)))
  const offered = known.size === 0 ? 'has no servers' : `has ${listOf(known)}`
  if (request.names?.size === 0)
    throw new UsageError(`Name the servers, or pass --all; ${paths} ${offered}`)
  const [unknown] = missing ?? []
  if (unknown !== undefined)
    throw new CommandError(1, `There is no server ${quoted(unknown)}: ${paths} ${offered}`)
  for (const { plan } of planned) refuse(plan, request)
  return planned
}

/** Servers without a command: an error if they were named, otherwise a warning. */
function refuse({ refused, file }: Plan, { action, names }: Request): void {
  if (action === 'unwrap') return
  for (const { name, url } of refused) {
    const reason =
      url === undefined
        ? `${quoted(name)} has no command that can be wrapped`
        : `${quoted(name)} is at a URL; only commands can be wrapped. To record it, run "ccmcp tap URL" with its URL, and put the URL of the tap into ${escapedLine(file.path)}`
    if (names !== undefined) throw new CommandError(1, `${reason}. Nothing was changed`)
    warn(reason)
  }
}

function plannedFor(place: ConfigPlace, request: Request): Promise<Plan | undefined> {
  return inFile(place, () => planChange(place, request))
}

/** Names the file in what is wrong with it. */
async function inFile<Value>({ path }: ConfigPlace, run: () => Promise<Value>): Promise<Value> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ConfigFileError)
      throw new CommandError(1, escapedLine(`${path}: ${error.message}. It was not changed`))
    throw error
  }
}

/** One change at a time, also of several processes. */
async function locked(folder: string, run: () => Promise<void>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const deadline = performance.now() + LOCK_TIMEOUT
  const lock = await LockFile.acquire(join(folder, 'lock'), { stale: STALE, deadline }).catch(
    (error: unknown) => {
      throw isToolError(error) ? new CommandError(1, error.message) : error
    },
  )
  try {
    await run()
  } finally {
    await lock.release()
  }
}

function report(action: Request['action'], plan: Plan, would: string): void {
  const path = escapedLine(plan.file.path)
  for (const name of plan.changed) print(`${escapedLine(name)}: ${would}${action}ped in ${path}\n`)
  for (const name of plan.unchanged)
    print(`${escapedLine(name)}: ${action === 'wrap' ? 'is wrapped already' : 'is not wrapped'}\n`)
}

/** Names and paths in a message. They may come from somebody else's project. */
function listOf(texts: Iterable<string>): string {
  return Array.from(texts, escapedLine).join(', ')
}

function quoted(name: string): string {
  return escaped(JSON.stringify(name))
}
