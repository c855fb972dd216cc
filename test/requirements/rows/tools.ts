import { all, handshake, modern, revisions, type Row } from '../row.js'

const since2025June = revisions('2025-06-18')
const since2025November = revisions('2025-11-25')
const here = (anchor: string, dates: readonly string[]) => ({ [`server/tools#${anchor}`]: dates })

export const tools: readonly Row[] = [
  {
    id: 'tools.human-in-the-loop',
    levels: ['SHOULD'],
    at: here('user-interaction-model', all),
    says: 'A person can deny a tool call.',
    unbound: 'people',
  },
  {
    id: 'tools.applications',
    levels: ['SHOULD'],
    at: here('user-interaction-model', all),
    says: 'Applications show which tools are exposed to the model and when they are called.',
    unbound: 'people',
  },
  {
    id: 'tools.capability',
    levels: ['MUST'],
    at: here('capabilities', all),
    says: 'A server with tools declares the `tools` capability.',
  },
  {
    id: 'tools.list',
    levels: ['MUST', 'MUST NOT'],
    at: here('capabilities', modern),
    says: '`tools/list` returns what is available to the caller, independent of the connection and of earlier requests.',
  },
  {
    id: 'tools.order',
    levels: ['SHOULD'],
    at: here('capabilities', modern),
    says: 'The order of tools is deterministic.',
  },
  {
    id: 'tools.retry-id',
    levels: ['MUST'],
    at: here('input-required-tool-results', modern),
    says: 'A retry has a new id.',
  },
  {
    id: 'tools.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', handshake),
    says: 'Clients are notified when the list of tools changes.',
  },
  {
    id: 'tools.list-changed-stream',
    levels: ['SHOULD'],
    at: here('list-changed-notification', modern),
    says: 'Subscription streams that requested it are notified when the list of tools changes.',
  },
  {
    id: 'tools.schema-valid',
    levels: ['MUST'],
    at: here('tool', since2025November),
    says: '`inputSchema` is a valid JSON Schema object.',
  },
  {
    id: 'tools.annotations-untrusted',
    levels: ['MUST'],
    at: here('tool', revisions('2025-03-26')),
    says: 'Annotations of untrusted servers are untrusted.',
    unbound: 'host',
  },
  {
    id: 'tools.name-length',
    levels: ['SHOULD'],
    at: here('tool-names', since2025November),
    says: 'A tool name has 1 to 128 characters.',
  },
  {
    id: 'tools.name-case',
    levels: ['SHOULD'],
    at: here('tool-names', since2025November),
    says: 'Tool names are case-sensitive.',
  },
  {
    id: 'tools.name-characters',
    levels: ['SHOULD'],
    at: here('tool-names', since2025November),
    says: 'A tool name has only ASCII letters, digits, `_`, `-` and `.`.',
  },
  {
    id: 'tools.name-no-spaces',
    levels: ['SHOULD NOT'],
    at: here('tool-names', since2025November),
    says: 'A tool name has no spaces, commas or other special characters.',
  },
  {
    id: 'tools.name-unique',
    levels: ['SHOULD'],
    at: here('tool-names', since2025November),
    says: 'A tool name is unique within a server.',
  },
  {
    id: 'tools.name-collisions',
    levels: ['SHOULD', 'SHOULD NOT'],
    at: here('tool-names', modern),
    says: 'Aggregators disambiguate equal tool names, and not by server name.',
    unbound: 'host',
  },
  {
    id: 'tools.embedded-resources',
    levels: ['SHOULD'],
    at: here('embedded-resources', since2025June),
    says: 'A server whose tools embed resources offers resources.',
    unbound: 'author',
  },
  {
    id: 'tools.structured-as-text',
    levels: ['SHOULD'],
    at: here('structured-content', since2025June),
    says: 'A structured result is also sent as JSON text.',
  },
  {
    id: 'tools.output-conforms',
    levels: ['MUST'],
    at: here('output-schema', since2025June),
    says: 'A structured result conforms to the output schema.',
  },
  {
    id: 'tools.output-checked-by-client',
    levels: ['SHOULD'],
    at: here('output-schema', since2025June),
    says: 'Clients validate structured results against the output schema.',
  },
  {
    id: 'tools.errors-to-model',
    levels: ['SHOULD'],
    at: here('error-handling', since2025November),
    says: 'Tool execution errors are reported in the result, so that the model sees them.',
  },
  {
    id: 'tools.security',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'A server validates tool inputs, controls access, limits the rate and sanitizes outputs.',
  },
  {
    id: 'tools.security-clients',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Clients ask for confirmation, show inputs, validate results, apply timeouts and log.',
    unbound: 'host',
  },
  {
    id: 'tools.header-empty',
    levels: ['MUST NOT'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` is not empty.',
  },
  {
    id: 'tools.header-token',
    levels: ['MUST'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` is a token, like an HTTP field name.',
  },
  {
    id: 'tools.header-control',
    levels: ['MUST NOT'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` has no control characters.',
  },
  {
    id: 'tools.header-unique',
    levels: ['MUST'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` is unique within a tool, regardless of case.',
  },
  {
    id: 'tools.header-primitive',
    levels: ['MUST', 'MUST'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` is allowed on integers, strings and booleans; integers are safe integers.',
  },
  {
    id: 'tools.header-reachable',
    levels: ['MUST'],
    at: here('x-mcp-header', modern),
    says: 'An `x-mcp-header` is reachable from the root by `properties` only.',
  },
  {
    id: 'tools.header-reachable-http',
    levels: ['MUST', 'MUST NOT'],
    at: { 'basic/transports/streamable-http#schema-extension': modern },
    says: 'An `x-mcp-header` is reachable from the root by `properties` only, not through arrays, compositions, conditions or references.',
  },
  {
    id: 'tools.header-rejected',
    levels: ['MUST', 'MUST', 'SHOULD'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'A client excludes tools with an invalid `x-mcp-header`, and logs it.',
  },
  {
    id: 'tools.header-sensitive',
    levels: ['SHOULD NOT'],
    at: here('x-mcp-header', modern),
    says: 'Sensitive parameters have no `x-mcp-header`.',
    unbound: 'author',
  },
]
