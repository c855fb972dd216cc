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
    says: 'Applications show which tools a model has and when they are called.',
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
    says: 'What `tools/list` answers is what is available to the caller, the same on every connection and whatever else was asked on it.',
  },
  {
    id: 'tools.order',
    levels: ['SHOULD'],
    at: here('capabilities', modern),
    says: 'The order of tools stays the same while the tools do.',
  },
  {
    id: 'tools.retry-id',
    levels: ['MUST'],
    at: here('input-required-tool-results', modern),
    says: 'A retry has another id than the request.',
    unbound: 'client',
  },
  {
    id: 'tools.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', handshake),
    says: 'When the tools change, clients are told.',
  },
  {
    id: 'tools.list-changed-stream',
    levels: ['SHOULD'],
    at: here('list-changed-notification', modern),
    says: 'When the tools change, streams that asked for it are told.',
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
    says: 'Annotations of servers that are not trusted are not believed.',
    unbound: 'client',
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
    says: 'Tool names differ by case.',
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
    says: 'A tool name occurs once in a server.',
  },
  {
    id: 'tools.name-collisions',
    levels: ['SHOULD', 'SHOULD NOT'],
    at: here('tool-names', modern),
    says: 'Who puts the tools of several servers together tells equal names apart, and not by the name of the server.',
    unbound: 'client',
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
    says: 'Structured results are checked against the output schema by who gets them.',
    unbound: 'client',
  },
  {
    id: 'tools.errors-to-model',
    levels: ['SHOULD'],
    at: here('error-handling', since2025November),
    says: 'What went wrong in a tool is shown to the model.',
    unbound: 'client',
  },
  {
    id: 'tools.security',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'A server checks the input of tools, controls who may use them, limits their rate and cleans what they return.',
  },
  {
    id: 'tools.security-clients',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Clients ask before sensitive operations, show the input, check results, keep time limits and log.',
    unbound: 'client',
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
    says: 'An `x-mcp-header` is a token, as field names of HTTP are.',
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
    says: 'An `x-mcp-header` occurs once in a tool, whatever its case.',
  },
  {
    id: 'tools.header-primitive',
    levels: ['MUST', 'MUST'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'An `x-mcp-header` stands on an integer, a string or a boolean; integers are safe ones.',
  },
  {
    id: 'tools.header-reachable',
    levels: ['MUST'],
    at: here('x-mcp-header', modern),
    says: 'An `x-mcp-header` stands where a chain of `properties` leads from the root.',
  },
  {
    id: 'tools.header-reachable-http',
    levels: ['MUST', 'MUST NOT'],
    at: { 'basic/transports/streamable-http#schema-extension': modern },
    says: 'An `x-mcp-header` stands where a chain of `properties` leads from the root, and not behind arrays, compositions, conditions or references.',
  },
  {
    id: 'tools.header-rejected',
    levels: ['MUST', 'MUST', 'SHOULD'],
    at: {
      ...here('x-mcp-header', modern),
      'basic/transports/streamable-http#schema-extension': modern,
    },
    says: 'A client leaves tools with a wrong `x-mcp-header` out, and says so in its log.',
    unbound: 'client',
  },
  {
    id: 'tools.header-sensitive',
    levels: ['SHOULD NOT'],
    at: here('x-mcp-header', modern),
    says: 'What is secret is not marked with `x-mcp-header`.',
    unbound: 'author',
  },
]
