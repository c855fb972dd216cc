import type { ConfigPlace } from './hosts.js'
import type { List, Member, Node, Scalar, Table } from './document.js'

/** A server in a configuration file. */
export interface Entry {
  readonly name: string
  /** Its path in the file, as JSON. */
  readonly id: string
  readonly argv: Argv | undefined
  /** Where it is, if it has no command. */
  readonly url: string | undefined
}

/** Where the command of a server is: in two members (`command`, `args`), or in one list. */
export type Argv =
  | {
      readonly table: Table
      readonly command: Member & { readonly value: Scalar }
      readonly args: List | undefined
    }
  | { readonly list: List }

/** Goose says `cmd`. */
const COMMANDS = ['command', 'cmd']
const URLS = ['url', 'httpUrl', 'serverUrl', 'uri', 'endpoint']

/** The servers of a file, by the tables that its host reads; the first one of a name counts. */
export function entriesOf(root: Table, { tables }: Pick<ConfigPlace, 'tables'>): Entry[] {
  const found = new Map<string, Entry>()
  for (const path of tables)
    for (const [name, { value }] of tableAt(root, path)?.members ?? []) {
      const id = JSON.stringify([...path, name])
      // A table of servers within another one.
      if (tables.some((table) => JSON.stringify(table) === id)) continue
      const entry = entryOf(name, id, value)
      if (entry !== undefined && !found.has(name)) found.set(name, entry)
    }
  return [...found.values()]
}

function tableAt(root: Table, path: readonly string[]): Table | undefined {
  let at: Node | undefined = root
  for (const name of path) at = at?.kind === 'table' ? at.members.get(name)?.value : undefined
  return at?.kind === 'table' ? at : undefined
}

function entryOf(name: string, id: string, value: Node): Entry | undefined {
  if (value.kind !== 'table') return undefined
  const argv = argvOf(value)
  const urls = URLS.map((key) => value.members.get(key)?.value).filter(isString)
  const isServer = urls.length > 0 || COMMANDS.some((key) => value.members.has(key))
  return isServer
    ? { name, id, argv, url: argv === undefined ? urls[0]?.value : undefined }
    : undefined
}

function argvOf(table: Table): Argv | undefined {
  const command = COMMANDS.map((name) => table.members.get(name)).find(
    (found) => found !== undefined,
  )
  if (command?.value.kind === 'list') {
    const list = command.value
    return isString(list.items[0]) ? { list } : undefined
  }
  // Older versions of Zed: `command: { path, args }`.
  if (command?.value.kind === 'table')
    return pairOf(command.value, command.value.members.get('path'))
  return pairOf(table, command)
}

function pairOf(table: Table, command: Member | undefined): Argv | undefined {
  const args = table.members.get('args')?.value
  if (command === undefined || !isString(command.value)) return undefined
  if (args !== undefined && args.kind !== 'list') return undefined
  return { table, command: { ...command, value: command.value }, args }
}

function isString(node: Node | undefined): node is Scalar & { value: string } {
  return node?.kind === 'scalar' && typeof node.value === 'string'
}

/** The words of a command; an argument that is not a string is undefined. */
export function wordsOf(argv: Argv): (string | undefined)[] {
  const items = 'list' in argv ? argv.list.items : [argv.command.value, ...(argv.args?.items ?? [])]
  return items.map((item) => (isString(item) ? item.value : undefined))
}

/** The parts of the text that have the command and its arguments; one part if they are `joined`. */
export function partsOf(argv: Argv, joined: boolean): { start: number; end: number }[] {
  if ('list' in argv) return [argv.list]
  const { command, args } = argv
  if (args === undefined) return [command.value]
  if (!joined) return [command.value, args]
  const [one, other] = [command.value, args]
  return [{ start: Math.min(one.start, other.start), end: Math.max(one.end, other.end) }]
}

/** The words of `ccmcp tap … --` before a command; 0 if there is no tap. */
export function tapWords(words: readonly (string | undefined)[]): number {
  const tap = words.indexOf('tap')
  const end = words.indexOf('--', tap + 1)
  if (tap < 1 || end === -1 || words[end + 1] === undefined) return 0
  const program = words[tap - 1] ?? ''
  return /(?:^|[\\/])(?:ccmcp(?:@[^\\/]*)?(?:\.cmd)?|dist[\\/]cli\.js)$/.test(program) ? end + 1 : 0
}
