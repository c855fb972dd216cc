import {
  type ConfigFile,
  ConfigFileError,
  readConfig,
  replaceConfig,
  requireWritable,
} from './config-file.js'
import { unifiedDiff } from './diff.js'
import type { Format, Splice, Table } from './document.js'
import { type Argv, type Entry, entriesOf, tapWords, wordsOf } from './entries.js'
import { type ConfigPlace, formatOf } from './hosts.js'
import { type WrapRecord, WrapRecords } from './wrap-records.js'
import { type Wrapped, changed, recordOf, unwrapEntry, wrapEntry } from './wrapping.js'

export interface Request {
  readonly action: 'wrap' | 'unwrap'
  /** The words of the tap: `node …/cli.js tap --`. */
  readonly words: readonly string[]
  /** The servers that are meant; undefined: all. */
  readonly names: ReadonlySet<string> | undefined
  /** The folder of records. */
  readonly records: string
}

/** What is to be changed in a file; nothing has been written yet. */
export interface Plan {
  readonly file: ConfigFile
  readonly records: WrapRecords
  /** All servers of the file. */
  readonly names: readonly string[]
  readonly changed: readonly string[]
  readonly unchanged: readonly string[]
  /** Servers that cannot be wrapped, with the URL if they have one. */
  readonly refused: readonly { readonly name: string; readonly url: string | undefined }[]
  readonly text: string
  readonly diff: string
  readonly record: WrapRecord
}

/**
 * Plans the change of a file. Undefined if there is no such file; throws if it is not understood, or must not be changed
 * although it would be.
 */
export async function planChange(place: ConfigPlace, request: Request): Promise<Plan | undefined> {
  const file = await readConfig(place.path)
  if (file === undefined) return undefined
  const records = new WrapRecords(request.records, file.path)
  const format = await loadFormat(place.path)
  const entries = entriesOf(parse(format, file.text, place.path), place)
  const before = await records.read()
  const meant = entries.filter(({ name }) => request.names?.has(name) !== false)
  const isDone = ({ argv }: Entry) =>
    argv !== undefined && tapWords(wordsOf(argv)) > 0 === (request.action === 'wrap')
  const changes = meant.flatMap((entry) =>
    entry.argv === undefined || isDone(entry)
      ? []
      : [{ entry, ...changeOf(format, file.text, entry.argv, request, before[entry.id]) }],
  )
  const result = verified(() => changed(format, file.text, place, changes))
  if (result.text !== file.text) requireWritable(file)
  return {
    file,
    records,
    names: entries.map(({ name }) => name),
    changed: changes.map(({ entry }) => entry.name),
    unchanged: meant.filter(isDone).map(({ name }) => name),
    refused: meant.filter(({ argv }) => argv === undefined),
    text: result.text,
    diff: unifiedDiff(
      place.path,
      file.text,
      changes.flatMap(({ splices }) => splices),
    ),
    record: recordAfter(
      place,
      request,
      before,
      file.text,
      changes.map(({ entry }) => entry),
      result,
    ),
  }
}

/** Writes what was planned. Throws if the file has changed since. */
export async function applyPlan({ file, records, text, record }: Plan): Promise<void> {
  if (text === file.text) return
  const isLast = Object.keys(record).length === 0
  if (!isLast) await records.save(file.path, record, file.bytes)
  await replaceConfig(file, Buffer.from(text))
  if (isLast) await records.delete()
}

async function loadFormat(path: string): Promise<Format> {
  const name = formatOf(path)
  if (name === 'toml') return (await import('./toml.js')).toml
  return name === 'yaml' ? (await import('./yaml.js')).yaml : (await import('./jsonc.js')).jsonc
}

function parse(format: Format, text: string, path: string): Table {
  const names = { jsonc: 'JSON', toml: 'TOML', yaml: 'YAML' }
  try {
    return format.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigFileError(`it is not valid ${names[formatOf(path)]}: ${reason}`)
  }
}

function changeOf(
  format: Format,
  text: string,
  argv: Argv,
  { action, words }: Request,
  recorded: Wrapped | undefined,
): { splices: Splice[]; words: (string | undefined)[] } {
  const before = wordsOf(argv)
  return verified(() =>
    action === 'wrap'
      ? { splices: wrapEntry(format, text, argv, words), words: [...words, ...before] }
      : {
          splices: unwrapEntry(format, text, argv, recorded),
          words: before.slice(tapWords(before)),
        },
  )
}

/** Turns errors into a ConfigFileError: the user must edit the file by hand. */
function verified<Value>(make: () => Value): Value {
  try {
    return make()
  } catch (error) {
    throw new ConfigFileError(
      `${error instanceof Error ? error.message : String(error)}; change it by hand`,
    )
  }
}

/** The record after a change. */
function recordAfter(
  { tables }: ConfigPlace,
  { action }: Request,
  before: WrapRecord,
  text: string,
  entries: readonly Entry[],
  result: { text: string; entries: Map<string, Entry> },
): WrapRecord {
  const record = new Map(Object.entries(before))
  for (const { id, argv } of entries) {
    const after = result.entries.get(id)?.argv
    if (action === 'unwrap' || argv === undefined || after === undefined) record.delete(id)
    else record.set(id, recordOf({ text, argv }, { text: result.text, argv: after }))
  }
  // Deletes the records of entries that were unwrapped or removed by other programs.
  const isHere = (id: string) =>
    tables.some((table) => id.startsWith(JSON.stringify(table).slice(0, -1)))
  for (const id of record.keys()) {
    const argv = result.entries.get(id)?.argv
    if (isHere(id) && (argv === undefined || tapWords(wordsOf(argv)) === 0)) record.delete(id)
  }
  return Object.fromEntries(record)
}
