import {
  type Format,
  type Splice,
  type Table,
  apply,
  plainValue,
  prepend,
  removeFirst,
} from './document.js'
import { type Argv, type Entry, entriesOf, partsOf, tapWords, wordsOf } from './entries.js'
import type { ConfigPlace } from './hosts.js'

/** The text of a command before and after it was wrapped. */
export interface Wrapped {
  /** Whether wrapping added `args`; there is then one part, from the command to `args`. */
  readonly joined: boolean
  readonly parts: readonly { readonly before: string; readonly after: string }[]
}

/** Puts the words of a tap before the command of a server. */
export function wrapEntry(
  format: Format,
  text: string,
  argv: Argv,
  words: readonly string[],
): Splice[] {
  const quoted = words.map((word) => format.quote(word))
  if ('list' in argv) return [prepend(text, argv.list, quoted)]
  const { table, command, args } = argv
  const { value, start, end } = command.value
  const [program = '', ...rest] = quoted
  const added = [...rest, format.moved(text.slice(start, end), String(value))]
  return [
    { start, end, text: program },
    args === undefined
      ? format.addList(text, table, command, 'args', `[${added.join(', ')}]`)
      : prepend(text, args, added),
  ]
}

/** Removes the words of a tap. Restores the recorded text if the wrapped text is unchanged. */
export function unwrapEntry(
  format: Format,
  text: string,
  argv: Argv,
  recorded: Wrapped | undefined,
): Splice[] {
  const restored = recorded === undefined ? undefined : restore(text, argv, recorded)
  if (restored !== undefined) return restored
  const count = tapWords(wordsOf(argv))
  if ('list' in argv) return [removeFirst(argv.list, count)]
  const { command, args } = argv
  const program = args?.items[count - 1]
  if (args === undefined || program === undefined) return []
  const raw = format.moved(text.slice(program.start, program.end), String(wordsOf(argv)[count]))
  return [
    { start: command.value.start, end: command.value.end, text: raw },
    removeFirst(args, count),
  ]
}

/** Undefined if the text is not the one that was written. */
function restore(text: string, argv: Argv, { joined, parts }: Wrapped): Splice[] | undefined {
  const places = partsOf(argv, joined)
  const isSame = ({ start, end }: { start: number; end: number }, index: number) =>
    parts[index]?.after === text.slice(start, end)
  if (places.length !== parts.length || !places.every(isSame)) return undefined
  return places.map(({ start, end }, index) => ({ start, end, text: parts[index]?.before ?? '' }))
}

/** What must be known of a wrapped entry to restore its text. */
export function recordOf(
  before: { text: string; argv: Argv },
  after: { text: string; argv: Argv },
): Wrapped {
  const joined = !('list' in before.argv) && before.argv.args === undefined
  const textsOf = ({ text, argv }: { text: string; argv: Argv }) =>
    partsOf(argv, joined).map(({ start, end }) => text.slice(start, end))
  const written = textsOf(after)
  return {
    joined,
    parts: textsOf(before).map((each, index) => ({ before: each, after: written[index] ?? '' })),
  }
}

/**
 * Applies changes of entries, and verifies them: each entry has the expected words, and all other values of the file
 * are the same. Throws if not: the file has something that is not understood, such as an alias of the command.
 */
export function changed(
  format: Format,
  text: string,
  place: ConfigPlace,
  changes: readonly {
    entry: Entry
    splices: readonly Splice[]
    words: readonly (string | undefined)[]
  }[],
): { text: string; entries: Map<string, Entry> } {
  const result = apply(
    text,
    changes.flatMap(({ splices }) => splices),
  )
  const entries = new Map(entriesOf(format.parse(result), place).map((entry) => [entry.id, entry]))
  for (const { entry, words } of changes) {
    const { argv } = entries.get(entry.id) ?? {}
    if (argv === undefined || JSON.stringify(wordsOf(argv)) !== JSON.stringify(words))
      throw new SyntaxError(`the command of ${JSON.stringify(entry.name)} cannot be changed`)
  }
  const ids = changes.map(({ entry }) => entry.id)
  if (
    withoutCommands(format.parse(text), place, ids) !==
    withoutCommands(format.parse(result), place, ids)
  )
    throw new SyntaxError('a change of the command would change other values')
  return { text: result, entries }
}

/** The values of a file as JSON, without the commands of some entries. */
function withoutCommands(root: Table, place: ConfigPlace, ids: readonly string[]): string {
  for (const { id, argv } of entriesOf(root, place)) {
    if (argv === undefined || !ids.includes(id)) continue
    if ('list' in argv) argv.list.items.splice(0)
    else {
      argv.table.members.delete('args')
      for (const [name, { value }] of argv.table.members)
        if (value === argv.command.value) argv.table.members.delete(name)
    }
  }
  return JSON.stringify(plainValue(root))
}
