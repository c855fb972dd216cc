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
import { CommandError } from './options.js'
import { type Piece, printAll, printJson, styled } from './print.js'
import { MAX_TEXT, indented, truncate, schemaText } from './format.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { isConnectionLost, withClient } from './with-client.js'

/** Maximum total characters of a list; a longer one is considered endless. */
const MAX_LIST = 64 * 1024 * 1024
/** Maximum characters to show of a name and of the type of an argument. */
const MAX_NAME = 200
const MAX_TYPE = 500
/** Maximum number of arguments to show of one tool or prompt. */
const MAX_ARGUMENTS = 200

export const list: Command = {
  usage: 'list [SERVER | -- COMMAND] [options]',
  description:
    'Lists the tools of a server with their arguments, its resources, resource templates and prompts.',
  notes: `${TARGET_NOTES}
If one of the lists fails, the others are shown, and the exit code is 1, or 3 if the connection was lost.`,
  options: { ...CLIENT_OPTIONS, ...HELP },
  positionals: [0, 1],
  takesServerCommand: true,
  run: (args) =>
    withClient(args, args.positionals[0], async (client, options) => {
      const [features, errors] = await featuresOf(client, options)
      if (args.values.has('json'))
        printJson(
          errors.length === 0
            ? features
            : {
                ...features,
                errors: errors.map(({ method, error }) => ({ method, ...errorFields(error) })),
              },
        )
      else printAll(formatFeatures(features, errors.length > 0))
      if (errors.length === 0) return
      const lines = errors.map(({ method, error }) => `${method} failed: ${messageOf(error)}`)
      throw new CommandError(
        errors.some(({ error }) => isConnectionLost(error)) ? 3 : 1,
        truncate(lines.join('\n'), 2 * MAX_TEXT),
      )
    }),
}

interface Features {
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

async function featuresOf(
  client: Client,
  options: CallOptions,
): Promise<[features: Features, errors: ListError[]]> {
  const { server, revision, capabilities, instructions } = client
  const errors: ListError[] = []
  /** All items of a list, or those received before it failed. */
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
        if (size > MAX_LIST) throw new TypeError(`the list exceeds ${MAX_LIST} characters`)
        found.push(item)
      }
    } catch (error) {
      options.signal?.throwIfAborted()
      // Some servers do not implement every list of a capability.
      if (!(error instanceof RpcError && error.code === METHOD_NOT_FOUND))
        errors.push({ method, error })
    }
    return found
  }
  const features = {
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
  return [features, errors]
}

function messageOf(error: unknown): string {
  if (error instanceof RpcError) return `the server returned error ${error.code}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}

function errorFields(error: unknown): object {
  if (error instanceof RpcError)
    return { code: error.code, message: error.message, data: error.data }
  return { message: messageOf(error) }
}

function formatFeatures(
  { server, revision, instructions, tools, resources, resourceTemplates, prompts }: Features,
  incomplete: boolean,
): Piece[] {
  const name =
    server === undefined ? 'Unnamed server' : inOneLine(`${server.name} ${server.version}`)
  const sections = [
    section('Tools', tools, toolLines),
    section('Resources', resources, ({ uri, ...details }) =>
      entry(uri, resourceDetails(uri, details), []),
    ),
    section('Resource templates', resourceTemplates, ({ uriTemplate, ...details }) =>
      entry(uriTemplate, resourceDetails(uriTemplate, details), []),
    ),
    section('Prompts', prompts, promptLines),
  ].filter((pieces) => pieces.length > 0)
  const instructionsText = instructions === undefined ? '' : `\n${indented(instructions, '  ')}\n`
  const nothing = sections.length > 0 || incomplete ? '' : 'No tools, resources or prompts.\n'
  return [
    styled('heading', name),
    `, protocol ${revision}\n${instructionsText}\n`,
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

interface Argument {
  name: string
  type: string
  description: string
}

/** A name, its description and its arguments, indented. */
function entry(name: string, description: string | undefined, args: readonly Argument[]): Piece[] {
  const text =
    description === undefined || description === '' ? '' : `${indented(description, '      ')}\n`
  const shown = args
    .slice(0, MAX_ARGUMENTS)
    .flatMap((argument): Piece[] => [
      '      - ',
      inOneLine(argument.name),
      styled('detail', argument.type === '' ? '' : ` (${truncate(argument.type, MAX_TYPE)})`),
      argument.description === '' ? '\n' : `: ${inOneLine(argument.description, MAX_TEXT)}\n`,
    ])
  const more =
    args.length > MAX_ARGUMENTS ? [`      - … and ${args.length - MAX_ARGUMENTS} more\n`] : []
  return ['  ', styled('name', inOneLine(name)), '\n', text, ...shown, ...more]
}

function toolLines({ name, description, inputSchema }: ToolListing): Piece[] {
  const { properties, required } = isObject(inputSchema) ? inputSchema : {}
  const needed: unknown[] = Array.isArray(required) ? required : []
  const args = Object.entries(isObject(properties) ? properties : {}).map(([argument, schema]) => ({
    name: argument,
    type: `${schemaText(schema)}${needed.includes(argument) ? '' : ', optional'}`,
    description:
      isObject(schema) && typeof schema['description'] === 'string' ? schema['description'] : '',
  }))
  return entry(name, description, args)
}

function promptLines({ name, description, arguments: declared = [] }: PromptListing): Piece[] {
  const args = (Array.isArray(declared) ? declared : []).filter(isArgument).map((argument) => ({
    name: argument.name,
    type: argument.required === true ? '' : 'optional',
    description: argument.description ?? '',
  }))
  return entry(name, description, args)
}

/** Servers may send any value. */
function isArgument(value: unknown): value is NonNullable<PromptListing['arguments']>[number] {
  return isObject(value) && typeof value['name'] === 'string'
}

type ResourceDetails = Pick<ResourceListing, 'name' | 'mimeType' | 'description'>

function resourceDetails(uri: string, { name, mimeType, description }: ResourceDetails): string {
  const details = [name === uri ? undefined : name, mimeType]
    .filter((detail) => detail !== undefined && detail !== '')
    .join(', ')
  return [details, description].filter((part) => part !== undefined && part !== '').join(': ')
}

function inOneLine(text: string, max = MAX_NAME): string {
  return truncate(String(text), max).trim().replaceAll(/\s+/g, ' ')
}
