import { type CallOptions, type Client, RpcError } from '../client.js'
import { METHOD_NOT_FOUND } from '../jsonrpc/errors.js'
import { isObject } from '../jsonrpc/message.js'
import type { PromptListing, ResourceListing, ResourceTemplateListing, ToolListing } from '../protocol/model.js'
import { type Command, HELP } from './command.js'
import { print } from './print.js'
import { schemaText, shown } from './show.js'
import { CLIENT_OPTIONS, TARGET_NOTES, withClient } from './target.js'

export const list: Command = {
  usage: 'list [SERVER | -- COMMAND] [options]',
  about: 'Shows what a server offers: its tools with their arguments, its resources, templates and prompts.',
  notes: TARGET_NOTES,
  options: { ...CLIENT_OPTIONS, ...HELP },
  words: [0, 1],
  takesCommand: true,
  run: (args) =>
    withClient(args, args.words[0], async (client, options) => {
      const offer = await offerOf(client, options)
      print(shown(args.given.has('json') ? `${JSON.stringify(offer, null, 2)}\n` : readable(offer), process.stdout))
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

async function offerOf(client: Client, options: CallOptions): Promise<Offer> {
  const { server, revision, capabilities, instructions } = client
  const has = (name: string) => capabilities[name] !== undefined
  return {
    server,
    revision,
    capabilities,
    instructions,
    tools: has('tools') ? await all(client.tools(options)) : [],
    resources: has('resources') ? await all(client.resources(options)) : [],
    resourceTemplates: has('resources') ? await all(client.resourceTemplates(options)) : [],
    prompts: has('prompts') ? await all(client.prompts(options)) : [],
  }
}

/** Every item; none where the server says that it has no such list. */
async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  try {
    for await (const item of items) found.push(item)
  } catch (error) {
    if (!(error instanceof RpcError && error.code === METHOD_NOT_FOUND)) throw error
  }
  return found
}

function readable({ server, revision, instructions, tools, resources, resourceTemplates, prompts }: Offer): string {
  const name = server === undefined ? 'A server without a name' : `${server.name} ${server.version}`
  const sections = [
    section('Tools', tools, toolLines),
    section('Resources', resources, ({ uri, ...facts }) => entry(uri, resourceFacts(uri, facts), [])),
    section('Resource templates', resourceTemplates, ({ uriTemplate, ...facts }) =>
      entry(uriTemplate, resourceFacts(uriTemplate, facts), []),
    ),
    section('Prompts', prompts, promptLines),
  ].filter((text) => text !== '')
  const said = instructions === undefined ? '' : `\n${indented(instructions, '  ')}\n`
  return `${name}, protocol ${revision}\n${said}\n${sections.join('\n') || 'It offers no tools, resources or prompts.\n'}`
}

function section<Item>(title: string, items: readonly Item[], lines: (item: Item) => string): string {
  return items.length === 0 ? '' : `${title}\n${items.map((item) => lines(item)).join('')}`
}

/** A name, what is said of it, and its arguments, each a little further to the right. */
function entry(name: string, about: string | undefined, rows: readonly string[]): string {
  const text = about === undefined || about === '' ? '' : `${indented(about, '      ')}\n`
  return `  ${inOneLine(name)}\n${text}${rows.map((row) => `      - ${row}\n`).join('')}`
}

function toolLines({ name, description, inputSchema }: ToolListing): string {
  const { properties, required } = isObject(inputSchema) ? inputSchema : {}
  const needed: unknown[] = Array.isArray(required) ? required : []
  const rows = Object.entries(isObject(properties) ? properties : {}).map(([argument, schema]) => {
    const about = isObject(schema) && typeof schema['description'] === 'string' ? `: ${inOneLine(schema['description'])}` : ''
    return `${argument} (${schemaText(schema)}${needed.includes(argument) ? '' : ', optional'})${about}`
  })
  return entry(name, description, rows)
}

function promptLines({ name, description, arguments: declared = [] }: PromptListing): string {
  const rows = (Array.isArray(declared) ? declared : []).filter(isArgument).map((argument) => {
    const about = argument.description === undefined ? '' : `: ${inOneLine(argument.description)}`
    return `${argument.name}${argument.required === true ? '' : ' (optional)'}${about}`
  })
  return entry(name, description, rows)
}

/** A server may say anything. */
function isArgument(value: unknown): value is NonNullable<PromptListing['arguments']>[number] {
  return isObject(value) && typeof value['name'] === 'string'
}

type Facts = Pick<ResourceListing, 'name' | 'mimeType' | 'description'>

function resourceFacts(uri: string, { name, mimeType, description }: Facts): string {
  const facts = [name === uri ? undefined : name, mimeType].filter((fact) => fact !== undefined && fact !== '').join(', ')
  return [facts, description].filter((part) => part !== undefined && part !== '').join(': ')
}

function inOneLine(text: string): string {
  return String(text).trim().replaceAll(/\s+/g, ' ')
}

function indented(text: string, by: string): string {
  return String(text).trim().replaceAll(/^/gm, by)
}
