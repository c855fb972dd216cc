/** The keys of one server. Their common hash tag puts them into one slot of a cluster, so that scripts can use several. */
export class Keys {
  readonly #tag: string

  constructor(prefix: string) {
    if (!/^[\w.:-]{1,64}$/.test(prefix))
      throw new TypeError(
        `redis: "prefix" must be 1 to 64 letters, digits, _ . : and -, not ${JSON.stringify(prefix)}`,
      )
    this.#tag = `{${prefix}}`
  }

  session(name: string): string {
    return `${this.#tag}:s:${name}`
  }

  events(stream: string): string {
    return `${this.#tag}:e:${stream}`
  }

  /** What is known of all streams of events: for the scripts, in their order. */
  get indexes(): readonly string[] {
    return ['ex', 'eo:', 'eu'].map((key) => `${this.#tag}:${key}`)
  }

  changes(): string {
    return `${this.#tag}:c`
  }

  process(id: string): string {
    return `${this.#tag}:p:${id}`
  }

  /** What the scripts of tasks get, in their order. */
  get tasks(): readonly string[] {
    return ['t:', 'te:', 'tq', 'tx', 'tu', 'tl', 'tw', 'tc:'].map((key) => `${this.#tag}:${key}`)
  }

  /** The log of changes of tasks. */
  get taskLog(): string {
    return `${this.#tag}:tl`
  }
}
