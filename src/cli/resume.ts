import type { CallOptions, Client } from '../client.js'
import type { ClientTask, TaskMembers } from '../extensions/tasks/client-tasks.js'
import { type Command, HELP } from './command.js'
import { FollowedTask } from './followed-task.js'
import { type Arguments, type Options, UsageError } from './options.js'
import { print, printJson } from './print.js'
import { printResult } from './print-result.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { withClient } from './with-client.js'

const RESUME_OPTIONS = {
  status: { description: 'print the status of the task, and do not wait for its end' },
  cancel: { description: 'cancel the task' },
} as const satisfies Options

export const resume: Command = {
  usage: 'resume ID [SERVER | -- COMMAND] [options]',
  description:
    'Waits for a task that an earlier call left running, answers its questions and prints its result.',
  notes: TARGET_NOTES,
  options: { ...RESUME_OPTIONS, ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  async run(args) {
    const [id = '', server] = args.positionals
    const { values } = args
    if (values.has('status') && values.has('cancel'))
      throw new UsageError('--status and --cancel exclude each other')
    const task = new FollowedTask(args, server)
    const use = (client: Client & TaskMembers, options: CallOptions) =>
      resumeTask(client.task(id), args, options, task)
    await withClient(args, server, use, { task })
  },
}

async function resumeTask(
  task: ClientTask,
  args: Arguments,
  options: CallOptions,
  followed: FollowedTask,
): Promise<void> {
  const { values } = args
  if (values.has('cancel')) return await task.cancel(options)
  if (values.has('status')) {
    const state = await task.status(options)
    const { status, statusMessage } = state
    if (values.has('json')) printJson(state)
    else print(`${status}${statusMessage === undefined ? '' : `: ${statusMessage}`}\n`)
    return
  }
  const line = followed.show('task')
  const result = await task.result(options).finally(() => line?.end())
  printResult('The task', result, args)
}
