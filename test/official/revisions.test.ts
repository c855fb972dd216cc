import { describe, expect, it } from 'vitest'
import { revisions } from '../../src/protocol/revisions/index.js'
import type { Revision } from '../../src/protocol/revisions/index.js'
import {
  type Definition,
  type OfficialSchema,
  members,
  methodOf,
  officialSchemas,
} from './schemas.js'

/* The properties of each revision, compared with its official schema. */

/** Definitions that are not supported, besides the methods in `excluded`: the experimental tasks. */
const EXCLUDED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  tool: ['execution'],
  capabilities: ['tasks', 'experimental', 'extensions'],
  sampling: ['task'],
}

const sorted = (list: Iterable<string>) =>
  [...new Set(list)].toSorted((one, other) => (one < other ? -1 : 1))
const own = (schema: OfficialSchema, name: string): Definition => schema.definitions[name] ?? {}

const UNIONS = {
  clientRequests: 'ClientRequest',
  clientNotifications: 'ClientNotification',
  serverRequests: 'ServerRequest',
  serverNotifications: 'ServerNotification',
} as const

const SHAPES: Readonly<Record<keyof Revision['fields'], string[]>> = {
  tool: ['Tool'],
  toolAnnotations: ['ToolAnnotations'],
  implementation: ['Implementation'],
  annotations: ['Annotations'],
  icon: ['Icon'],
  text: ['TextContent'],
  image: ['ImageContent'],
  audio: ['AudioContent'],
  resource_link: ['ResourceLink'],
  resource: ['EmbeddedResource'],
  resourceContents: ['TextResourceContents', 'BlobResourceContents'],
  resourceListing: ['Resource'],
  resourceTemplate: ['ResourceTemplate'],
  prompt: ['Prompt'],
  promptArgument: ['PromptArgument'],
  capabilities: ['ServerCapabilities'],
  progress: ['ProgressNotificationParams'],
  completion: ['CompleteRequestParams'],
  formString: ['StringSchema'],
  formNumber: ['NumberSchema'],
  formBoolean: ['BooleanSchema'],
  formEnum: [
    'EnumSchema',
    'UntitledSingleSelectEnumSchema',
    'TitledSingleSelectEnumSchema',
    'LegacyTitledEnumSchema',
  ],
  formMultiEnum: ['UntitledMultiSelectEnumSchema', 'TitledMultiSelectEnumSchema'],
  sampling: ['CreateMessageRequestParams'],
  samplingMessage: ['SamplingMessage'],
  root: ['Root'],
}

/** The properties of a shape. In the first revisions, params are part of the message's definition. */
function propertiesOf(schema: OfficialSchema, name: string): string[] {
  const definition =
    name.endsWith('Params') && !(name in schema.definitions)
      ? own(schema, name.slice(0, -'Params'.length)).properties?.['params']
      : own(schema, name)
  return Object.keys(definition?.properties ?? {})
}

function contentKinds(schema: OfficialSchema): string[] {
  const items = own(schema, 'CallToolResult').properties?.['content']?.items ?? {}
  const names =
    items.$ref === undefined
      ? (items.anyOf ?? []).map(({ $ref }) => $ref?.split('/').at(-1) ?? '')
      : members(schema, 'ContentBlock')
  return names.map((name) => String(own(schema, name).properties?.['type']?.const))
}

function structuredContent(schema: OfficialSchema): Revision['structuredContent'] {
  const property = own(schema, 'CallToolResult').properties?.['structuredContent']
  if (property === undefined) return 'none'
  return property.type === 'object' ? 'object' : 'any'
}

/** The first revision defines annotations within `Annotated`. */
function inlineFields(schema: OfficialSchema, name: string): string[] {
  const annotated = own(schema, 'Annotated').properties?.['annotations']
  return name === 'Annotations' ? Object.keys(annotated?.properties ?? {}) : []
}

describe('the official schemas', () => {
  it('exist for every revision', () => {
    expect(sorted(Object.keys(officialSchemas))).toEqual(revisions.map(({ id }) => id))
    for (const schema of Object.values(officialSchemas))
      expect(Object.keys(schema.definitions).length).toBeGreaterThan(70)
  })
})

describe.each(revisions.map((revision) => [revision.id, revision] as const))(
  '%s',
  (id, revision) => {
    const schema = officialSchemas[id] as OfficialSchema

    it.each(Object.entries(UNIONS))('%s', (list, union) => {
      const official = members(schema, union)
        .map((name) => methodOf(schema, name))
        .filter((method) => !(method in revision.unsupportedMethods))
      expect(
        sorted(revision.methods[list as keyof typeof UNIONS]),
        `the methods in protocol/revisions/${id}.ts (received) must be those of the official schema (expected); a method that is not served goes into unsupportedMethods, one that is not official is an extension`,
      ).toEqual(sorted(official))
    })

    it('excludes only methods that exist', () => {
      const official = Object.values(UNIONS).flatMap((union) =>
        members(schema, union).map((name) => methodOf(schema, name)),
      )
      expect(official).toEqual(expect.arrayContaining(Object.keys(revision.unsupportedMethods)))
    })

    it.each(Object.entries(SHAPES))('fields of %s', (shape, names) => {
      const excluded = EXCLUDED_FIELDS[shape] ?? []
      // `_meta` of params is not set by us.
      const official = names
        .flatMap((name) => [...propertiesOf(schema, name), ...inlineFields(schema, name)])
        .filter(
          (name) =>
            !excluded.includes(name) &&
            !(['progress', 'sampling', 'completion'].includes(shape) && name === '_meta'),
        )
      expect(sorted(official)).toEqual(sorted(revision.fields[shape as keyof Revision['fields']]))
    })

    it('content types', () =>
      expect(sorted(contentKinds(schema))).toEqual(sorted(revision.contentTypes)))
    it('structured content', () =>
      expect(structuredContent(schema)).toBe(revision.structuredContent))
    it('batches', () => {
      const messages = own(schema, 'JSONRPCMessage').anyOf ?? []
      expect(
        messages.some(({ type, $ref }) => type === 'array' || $ref?.includes('Batch') === true),
      ).toBe(revision.batches)
    })
    it('the id of an error response without a readable request id', () => {
      const error = schema.definitions['JSONRPCError'] ?? own(schema, 'JSONRPCErrorResponse')
      expect(error.required?.includes('id') === true ? 'null' : 'omitted').toBe(
        revision.unreadableId,
      )
    })
    it('resultType and caching hints in results', () => {
      expect(own(schema, 'Result').required?.includes('resultType') === true).toBe(
        revision.typedResults,
      )
      expect(own(schema, 'ListToolsResult').required?.includes('ttlMs') === true).toBe(
        revision.typedResults,
      )
    })
    it('requests to the client: by request or by result', () => {
      expect('InputRequiredResult' in schema.definitions ? 'result' : 'request').toBe(
        revision.asksBy,
      )
      expect('ToolUseContent' in schema.definitions).toBe(revision.samplingTools)
      const required = schema.definitions['ElicitRequestURLParams']?.required
      expect(
        required === undefined
          ? 'none'
          : required.includes('elicitationId')
            ? 'identified'
            : 'plain',
      ).toBe(revision.urlElicitation)
    })
    it('lifecycle: handshake or stateless', () => {
      expect('InitializeRequest' in schema.definitions ? 'handshake' : 'stateless').toBe(
        revision.lifecycle,
      )
    })
  },
)
