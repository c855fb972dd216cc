import { type Revision, revisions } from '../protocol/revisions/index.js'
import { type Command, HELP } from './command.js'
import { print } from './print.js'

export const revisionsCommand: Command = {
  usage: 'revisions [options]',
  description: 'Shows the differences between the protocol revisions.',
  options: {
    markdown: { description: 'print the page docs/revisions.md' },
    json: { description: 'print JSON' },
    ...HELP,
  },
  positionals: [0, 0],
  run({ values }) {
    if (values.has('json')) print(`${JSON.stringify(revisions, null, 2)}\n`)
    else print(values.has('markdown') ? markdown() : plain())
    return Promise.resolve()
  },
}

type Row = readonly [fact: string, ...values: string[]]

const FACTS: Readonly<Record<string, (revision: Revision) => string>> = {
  opening: ({ opening }) => opening,
  'JSON-RPC batches': ({ batches }) => (batches ? 'yes' : 'no'),
  'id of an error without a request': ({ unreadableId }) => unreadableId,
  'content kinds': ({ contentKinds }) => contentKinds.join(' '),
  'structured content': ({ structuredContent }) => structuredContent,
  results: ({ results }) => results,
  'polling over HTTP': ({ polling }) => (polling ? 'yes' : 'no'),
}

function rows(): Row[] {
  const facts = Object.entries(FACTS).map(([fact, of]): Row => [fact, ...revisions.map(of)])
  return [['fact', ...revisions.map(({ id }) => id)], ...facts]
}

/** In which revisions each name occurs: one row per name, one column per revision. */
function presence(listOf: (revision: Revision) => readonly string[], excluded: boolean): Row[] {
  const names = [...new Set(revisions.flatMap((revision) => [...listOf(revision)]))]
  return names.map((name) => [
    name,
    ...revisions.map((revision) => {
      if (listOf(revision).includes(name)) return 'yes'
      return excluded && name in revision.excluded ? 'excluded' : ''
    }),
  ])
}

const METHODS = {
  'Requests of the client': 'clientRequests',
  'Notifications of the client': 'clientNotifications',
  'Requests of the server': 'serverRequests',
  'Notifications of the server': 'serverNotifications',
} as const

function sections(): [title: string, rows: Row[]][] {
  const ids = revisions.map(({ id }) => id)
  const methods = Object.entries(METHODS).map(([title, list]): [string, Row[]] => [
    title,
    [['method', ...ids], ...presence(({ methods: all }) => all[list], true)],
  ])
  const shapes = revisions.flatMap(({ fields }) => Object.keys(fields))
  const fields = [...new Set(shapes)].map((shape): [string, Row[]] => [
    `Fields of ${shape}`,
    [
      ['field', ...ids],
      ...presence((revision) => revision.fields[shape as keyof Revision['fields']], false),
    ],
  ])
  return [['Facts', rows()], ...methods, ...fields]
}

function plain(): string {
  return sections()
    .map(([title, table]) => `${title}\n${aligned(table)}`)
    .join('\n\n')
    .concat('\n')
}

function aligned(table: readonly Row[]): string {
  const widths = (table[0] ?? []).map((_, column) =>
    Math.max(...table.map((row) => (row[column] ?? '').length)),
  )
  return table
    .map((row) =>
      `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
    )
    .join('\n')
}

function markdown(): string {
  const table = (all: readonly Row[]) => {
    const [head = [''], ...body] = all.map((row) => `| ${row.join(' | ')} |`)
    return [head, `|${'---|'.repeat(revisions.length + 1)}`, ...body].join('\n')
  }
  const excluded = revisions.flatMap(({ id, excluded: methods }) =>
    Object.entries(methods).map(([method, why]) => `- \`${method}\` of ${id}: ${why}`),
  )
  return [
    '# The revisions of the protocol',
    'Made by `ccmcp revisions --markdown` from `src/protocol/revisions/`; a test holds this page equal to it, and others hold those files equal to the official schemas.',
    ...sections().map(([title, all]) => `## ${title}\n\n${table(all)}`),
    `## Excluded\n\n${excluded.join('\n')}`,
  ]
    .join('\n\n')
    .concat('\n')
}
