import { existsSync } from 'node:fs'
import { nameOf, isTaskId } from '../extensions/tasks/task-id.js'
import { type TaskState, isTerminal, restore } from '../extensions/tasks/task-record.js'
import { truncate } from '../jsonrpc/truncate.js'
import { sendCommand } from '../stores/journal/journal-commands.js'
import { JournalCorruptError } from '../stores/journal/journal-lines.js'
import { userOf } from '../stores/journal/journal-lock.js'
import { readJournal } from '../stores/journal/journal-task-store.js'
import type { ClaimedTask, TaskCommand } from '../stores/task-store.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError, UsageError, columns } from './options.js'
import { type Piece, print, printAll, printJson, styled } from './print.js'

/** Hexadecimal digits that are shown of a name. */
const SHOWN = 12
const FEWEST = 4
/** Milliseconds to wait until the server has done what a command says. */
const COMMAND_TIMEOUT = 5000

export const tasksCommand: Command = {
  usage: 'tasks [show|cancel|retry NAME] [options]',
  description:
    'Lists the tasks in the journal of a server, shows one, or tells the server to cancel it or to run it again.',
  notes: `NAME is what the list shows, or its first digits; the id of a task works too. The list can be read while
the server runs. "retry" interrupts a running task, and runs it again with its recorded steps.`,
  options: {
    journal: { value: 'FILE', description: 'journal of a server (default tasks.journal)' },
    json: { description: 'print JSON' },
    ...HELP,
  },
  positionals: [0, 2],
  run: runTasks,
}

interface ListedTask {
  /** The digest of its id, in hexadecimal. */
  readonly digest: string
  readonly stored: ClaimedTask
  readonly state: TaskState
}

async function runTasks({ values, positionals: [action, name] }: Arguments): Promise<void> {
  const path = values.get('journal') ?? 'tasks.journal'
  const json = values.has('json')
  if (action === undefined) return list(read(path), json)
  if (action !== 'show' && action !== 'cancel' && action !== 'retry')
    throw new UsageError(`Unknown action ${JSON.stringify(action)}; use show, cancel or retry`)
  if (name === undefined) throw new UsageError(`Missing NAME; usage: ccmcp tasks ${action} NAME`)
  const found = await find(read(path), name)
  if (action === 'show') return show(found, json)
  await command(path, action, found)
}

/** The tasks in a journal that have not expired, the newest first. */
function read(path: string): ListedTask[] {
  if (!existsSync(path))
    throw new CommandError(2, `There is no journal ${path}; pass its path with --journal`)
  try {
    return [...readJournal(path).values()]
      .filter(({ expires }) => expires > Date.now())
      .map((stored) => ({
        digest: Buffer.from(stored.name, 'base64url').toString('hex'),
        stored,
        state: JSON.parse(stored.state) as TaskState, // written by the extension
      }))
      .toSorted((one, other) => other.state.createdAt - one.state.createdAt)
  } catch (error) {
    if (error instanceof JournalCorruptError) throw new CommandError(1, error.message)
    throw error
  }
}

async function find(tasks: readonly ListedTask[], name: string): Promise<ListedTask> {
  const id = isTaskId(name) ? await nameOf(name) : undefined
  const typed = name.toLowerCase()
  const found = tasks.filter(
    ({ digest, stored }) =>
      stored.name === id || (typed.length >= FEWEST && digest.startsWith(typed)),
  )
  const [first, second] = found
  if (first === undefined)
    throw new CommandError(
      1,
      `There is no task ${JSON.stringify(truncate(name))}; pass at least ${FEWEST} digits of a name that "ccmcp tasks" lists`,
    )
  if (second !== undefined)
    throw new CommandError(
      1,
      `${found.length} tasks have names that begin with ${JSON.stringify(name)}; pass more digits`,
    )
  return first
}

function list(tasks: readonly ListedTask[], json: boolean): void {
  if (json) return printJson({ tasks: tasks.map((task) => summaryOf(task)) })
  if (tasks.length === 0) return print('No tasks\n')
  const wide = tasks.reduce((width, { state }) => Math.max(width, state.tool.length), 0)
  const pieces = tasks.flatMap((task): Piece[] => {
    const { state, digest } = task
    return [
      styled('name', digest.slice(0, SHOWN)),
      `  ${statusOf(task).padEnd(14)}  ${state.tool.padEnd(wide)}  `,
      styled('detail', new Date(state.createdAt).toISOString()),
      state.statusMessage === undefined ? '\n' : `  ${truncate(oneLine(state.statusMessage))}\n`,
    ]
  })
  printAll(pieces)
}

function show(task: ListedTask, json: boolean): void {
  const { stored, state } = task
  // What is sealed can be opened by the server only.
  const { origin, steps, answers } =
    isTerminal(state) || 'sealed' in state
      ? { origin: undefined, steps: {}, answers: {} }
      : restore(stored.entries)
  if (json) {
    const { result, error } = state
    return printJson({
      ...summaryOf(task),
      arguments: origin?.arguments,
      client: origin?.client,
      steps,
      answers,
      questions: state.open,
      result,
      error,
    })
  }
  const rows: [string, string][] = [
    ['name', task.digest],
    ['tool', state.tool],
    ['status', statusOf(task)],
    ['message', oneLine(state.statusMessage ?? '')],
    ['owner', oneLine(stored.owner) || 'not authenticated'],
    ['created', new Date(state.createdAt).toISOString()],
    ['updated', new Date(state.updatedAt).toISOString()],
    ['expires', new Date(stored.expires).toISOString()],
    ['attempts', String(state.attempt)],
    ['retries', String(state.retried ?? 0)],
    ['steps', Object.keys(steps).map(oneLine).join(', ')],
    ['questions', Object.keys(state.open).map(oneLine).join(', ')],
    ['call key', state.key],
  ]
  print(`${columns(rows.filter(([, value]) => value !== '').map(shortened))}\n`)
}

function shortened([left, right]: [string, string]): [string, string] {
  return [left, truncate(right, 1000)]
}

function summaryOf({ digest, stored, state }: ListedTask): object {
  const { tool, statusMessage, attempt, retried = 0, key } = state
  return {
    name: digest,
    tool,
    status: state.status,
    running: state.started,
    statusMessage,
    owner: stored.owner,
    createdAt: new Date(state.createdAt).toISOString(),
    lastUpdatedAt: new Date(state.updatedAt).toISOString(),
    expiresAt: new Date(stored.expires).toISOString(),
    attempts: attempt,
    retries: retried,
    key,
  }
}

/** The status; `working` is shown as `running` or `queued`. */
function statusOf({ state }: ListedTask): string {
  if (state.status !== 'working') return state.status
  return state.started ? 'running' : 'queued'
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

/** Has a command carried out by the server that uses the journal. */
async function command(
  path: string,
  action: TaskCommand['command'],
  { digest, stored, state }: ListedTask,
): Promise<void> {
  const shown = digest.slice(0, SHOWN)
  if (isTerminal(state))
    throw new CommandError(1, `The task ${shown} has ended: it is ${state.status}`)
  if (action === 'retry' && state.status === 'input_required')
    throw new CommandError(1, `The task ${shown} waits for an answer: there is nothing to retry`)
  const user = userOf(path)
  if (user === undefined)
    throw new CommandError(1, `No server is using ${path}; start the server, then try again`)
  if (
    !(await sendCommand(path, { command: action, name: stored.name }, user.text, COMMAND_TIMEOUT))
  )
    throw new CommandError(
      1,
      `Process ${user.pid}, which uses ${path}, did not accept the command; it must serve the tasks and run as your user`,
    )
  // A task that is run again is queued first.
  const isDone = (after: TaskState) =>
    isTerminal(after) || (action === 'retry' && (after.attempt > state.attempt || !after.started))
  const after = await stateOf(path, stored.name, isDone)
  if (after === undefined)
    throw new CommandError(1, `The server has not changed the task ${shown}; its log may say why`)
  print(`${shown} is ${isTerminal(after) ? after.status : 'run again'}\n`)
}

/** The state of a task when it is as it should be; undefined if it does not become so. */
async function stateOf(
  path: string,
  name: string,
  isDone: (state: TaskState) => boolean,
): Promise<TaskState | undefined> {
  for (const end = Date.now() + COMMAND_TIMEOUT; Date.now() < end;) {
    const task = read(path).find(({ stored }) => stored.name === name)
    if (task !== undefined && isDone(task.state)) return task.state
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return undefined
}
