import { type CallOptions, type Client, RpcError } from '../client.js'
import { METHOD_NOT_FOUND } from '../jsonrpc/errors.js'
import { isObject } from '../jsonrpc/message.js'
import type {
  PromptListing,
  ResourceListing,
  ResourceTemplateListing,
  ToolListing,
} from '../protocol/model.js'
import { type Command, HELP } from './command.js'
import { Failure } from './options.js'
import { type Piece, print, printJson, styled } from './print.js'
import { cut, schemaText } from './show.js'
import { CLIENT_OPTIONS, TARGET_NOTES, isConnectionLost, withClient } from './target.js'

/** Characters of all that a list holds, after which it is taken for endless. */
const MAX_LIST = 64 * 1024 * 1024
/** Characters that are shown of a name, of a longer text, and of the type of an argument. */
const MAX_NAME = 200
const MAX_TEXT = 5000
const MAX_FACTS = 500
/** Arguments that are shown of one tool or prompt. */
const MAX_ROWS = 200

export const list: Command = {
  usage: 'list [SERVER | -- COMMAND] [options]',
  about:
    'Shows what a server offers: its tools with their arguments, its resources, templates and prompts.',
  notes: `${TARGET_NOTES}
Where one of the lists fails, the others are shown, and the exit code is 1, or 3 if the connection broke.`,
  options: { ...CLIENT_OPTIONS, ...HELP },
  words: [0, 1],
  takesCommand: true,
  run: (args) =>
    withClient(args, args.words[0], async (client, options) => {
      const [offer, errors] = await offerOf(client, options)
      if (args.given.has('json'))
        printJson(
          errors.length === 0
            ? offer
            : {
                ...offer,
                errors: errors.map(({ method, error }) => ({ method, ...factsOf(error) })),
              },
        )
      else print(...readable(offer, errors.length > 0))
      if (errors.length === 0) return
      const lines = errors.map(({ method, error }) => `${method} failed: ${messageOf(error)}`)
      throw new Failure(
        errors.some(({ error }) => isConnectionLost(error)) ? 3 : 1,
        cut(lines.join('\n'), 2 * MAX_TEXT),
      )
    }),
}

interface Offer {
  server: Client['server']
  revision: string
  capabilities: Client['capabilities']
  instructions: string | undefined
  tools: ToolListing[]
  resources: ResourceListing[]
  resourceTemplates: ResourceTemplateListing[]
  prompts: PromptListing[]
}

interface ListError {
  method: string
  error: unknown
}

async function offerOf(
  client: Client,
  options: CallOptions,
): Promise<[offer: Offer, errors: ListError[]]> {
  const { server, revision, capabilities, instructions } = client
  const errors: ListError[] = []
  /** Every item of a list, or those that came before it failed. */
  const all = async <Item>(
    capability: string,
    method: string,
    items: AsyncIterable<Item>,
  ): Promise<Item[]> => {
    const found: Item[] = []
    if (
      capabilities[capability] === undefined ||
      errors.some(({ error }) => isConnectionLost(error))
    )
      return found
    try {
      let size = 0
      for await (const item of items) {
        size += JSON.stringify(item).length
        if (size > MAX_LIST) throw new TypeError(`the list is longer than ${MAX_LIST} characters`)
        found.push(item)
      }
    } catch (error) {
      options.signal?.throwIfAborted()
      // Some servers do not have every list that belongs to a capability.
      if (!(error instanceof RpcError && error.code === METHOD_NOT_FOUND))
        errors.push({ method, error })
    }
    return found
  }
  const offer = {
    server,
    revision,
    capabilities,
    instructions,
    tools: await all('tools', 'tools/list', client.tools(options)),
    resources: await all('resources', 'resources/list', client.resources(options)),
    resourceTemplates: await all(
      'resources',
      'resources/templates/list',
      client.resourceTemplates(options),
    ),
    prompts: await all('prompts', 'prompts/list', client.prompts(options)),
  }
  return [offer, errors]
}

function messageOf(error: unknown): string {
  if (error instanceof RpcError)
    return `the server answered with error ${error.code}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}

function factsOf(error: unknown): object {
  if (error instanceof RpcError)
    return { code: error.code, message: error.message, data: error.data }
  return { message: messageOf(error) }
}

function readable(
  { server, revision, instructions, tools, resources, resourceTemplates, prompts }: Offer,
  incomplete: boolean,
): Piece[] {
  const name =
    server === undefined ? 'A server without a name' : inOneLine(`${server.name} ${server.version}`)
  const sections = [
    section('Tools', tools, toolLines),
    section('Resources', resources, ({ uri, ...facts }) =>
      entry(uri, resourceFacts(uri, facts), []),
    ),
    section('Resource templates', resourceTemplates, ({ uriTemplate, ...facts }) =>
      entry(uriTemplate, resourceFacts(uriTemplate, facts), []),
    ),
    section('Prompts', prompts, promptLines),
  ].filter((pieces) => pieces.length > 0)
  const said = instructions === undefined ? '' : `\n${indented(instructions, '  ')}\n`
  const nothing =
    sections.length > 0 || incomplete ? '' : 'It offers no tools, resources or prompts.\n'
  return [
    styled('heading', name),
    `, protocol ${revision}\n${said}\n`,
    ...sections.flatMap((pieces, index) => (index === 0 ? pieces : ['\n', ...pieces])),
    nothing,
  ]
}

function section<Item>(
  title: string,
  items: readonly Item[],
  lines: (item: Item) => Piece[],
): Piece[] {
  return items.length === 0
    ? []
    : [styled('heading', title), '\n', ...items.flatMap((item) => lines(item))]
}

interface Row {
  name: string
  facts: string
  about: string
}

/** A name, what is said of it, and its arguments, each a little further to the right. */
function entry(name: string, about: string | undefined, rows: readonly Row[]): Piece[] {
  const text = about === undefined || about === '' ? '' : `${indented(about, '      ')}\n`
  const shown = rows
    .slice(0, MAX_ROWS)
    .flatMap((row): Piece[] => [
      '      - ',
      inOneLine(row.name),
      styled('detail', row.facts === '' ? '' : ` (${cut(row.facts, MAX_FACTS)})`),
      row.about === '' ? '\n' : `: ${inOneLine(row.about, MAX_TEXT)}\n`,
    ])
  const more = rows.length > MAX_ROWS ? [`      - … and ${rows.length - MAX_ROWS} more\n`] : []
  return ['  ', styled('name', inOneLine(name)), '\n', text, ...shown, ...more]
}

function toolLines({ name, description, inputSchema }: ToolListing): Piece[] {
  const { properties, required } = isObject(inputSchema) ? inputSchema : {}
  const needed: unknown[] = Array.isArray(required) ? required : []
  const rows = Object.entries(isObject(properties) ? properties : {}).map(([argument, schema]) => ({
    name: argument,
    facts: `${schemaText(schema)}${needed.includes(argument) ? '' : ', optional'}`,
    about:
      isObject(schema) && typeof schema['description'] === 'string' ? schema['description'] : '',
  }))
  return entry(name, description, rows)
}

function promptLines({ name, description, arguments: declared = [] }: PromptListing): Piece[] {
  const rows = (Array.isArray(declared) ? declared : []).filter(isArgument).map((argument) => ({
    name: argument.name,
    facts: argument.required === true ? '' : 'optional',
    about: argument.description ?? '',
  }))
  return entry(name, description, rows)
}

/** A server may say anything. */
function isArgument(value: unknown): value is NonNullable<PromptListing['arguments']>[number] {
  return isObject(value) && typeof value['name'] === 'string'
}

type Facts = Pick<ResourceListing, 'name' | 'mimeType' | 'description'>

function resourceFacts(uri: string, { name, mimeType, description }: Facts): string {
  const facts = [name === uri ? undefined : name, mimeType]
    .filter((fact) => fact !== undefined && fact !== '')
    .join(', ')
  return [facts, description].filter((part) => part !== undefined && part !== '').join(': ')
}

function inOneLine(text: string, most = MAX_NAME): string {
  return cut(String(text), most).trim().replaceAll(/\s+/g, ' ')
}

function indented(text: string, by: string): string {
  return cut(String(text).trim(), MAX_TEXT).replaceAll(/^/gm, by)
}
