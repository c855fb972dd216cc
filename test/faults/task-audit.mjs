// Follows the tasks in a store, write by write, and reports what must never be written.

const TERMINAL = new Set(['completed', 'failed', 'cancelled'])

export class TaskAudit {
  /** The last state of each task, by name. */
  tasks = new Map()
  #problems

  /** Problems are added to a list. */
  constructor(problems) {
    this.#problems = problems
  }

  created(name, version, state, entries) {
    if (this.tasks.has(name)) this.#problems.push('a task was created twice')
    const task = { version, state: JSON.parse(state), steps: new Set() }
    this.tasks.set(name, task)
    this.appended(name, entries)
  }

  /** `version` is that before the change. */
  changed(name, version, state) {
    const task = this.tasks.get(name)
    if (task === undefined)
      return void this.#problems.push('a task was changed that does not exist')
    if (task.version !== version) this.#problems.push('a version was skipped, or used twice')
    if (TERMINAL.has(task.state.status)) this.#problems.push('a task was changed after its end')
    task.version = version + 1
    task.state = JSON.parse(state)
  }

  appended(name, entries) {
    for (const { step } of entries.map((entry) => JSON.parse(entry))) {
      if (step === undefined) continue
      const { steps } = this.tasks.get(name) ?? { steps: new Set() }
      if (steps.has(step)) this.#problems.push('a step was recorded twice')
      steps.add(step)
    }
  }
}
