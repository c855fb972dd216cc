// The layers of src/, in one place: test/project/architecture.test.ts checks the imports against them, and build.mjs
// bundles by them. Paths are relative to src/ and written with "/".

/** Files of src/ that are built as bundles of their own: what users import, and the command line (`cli`). */
export const ENTRY_POINTS = [
  'index',
  'stdio',
  'http',
  'client',
  'testing',
  'extensions',
  'tasks',
  'apps',
  'journal',
  'skills',
  'redis',
  'telemetry',
  'prometheus',
  'oauth',
  'cli',
]

/**
 * What each folder may import besides its own files: folders and files of src, and packages. `any`: everything.
 * @type {Readonly<Record<string, readonly string[] | 'any'>>}
 */
export const MAY_IMPORT = {
  framing: [],
  schema: ['is-object.ts'],
  jsonrpc: ['is-object.ts', 'runtime.ts'],
  protocol: ['jsonrpc'],
  server: ['protocol', 'schema', 'jsonrpc', 'runtime.ts', 'stores/change-bus.ts'],
  client: [
    'protocol',
    'schema',
    'jsonrpc',
    'version.ts',
    'runtime.ts',
    // For OAuth:
    'auth/loopback.ts',
    'auth/header-secrets.ts',
    'auth/secrets.ts',
    'transports/http/client/authorizer.ts',
    'transports/http/client/node-fetch.ts',
    'oauth4webapi',
  ],
  transports: [
    'framing',
    'jsonrpc',
    'protocol/revisions',
    'protocol/errors.ts',
    'protocol/meta.ts',
    'protocol/methods.ts',
    'runtime.ts',
    'version.ts',
    'stores',
    'auth',
  ],
  stores: ['runtime.ts'],
  extensions: ['server', 'client', 'protocol', 'schema', 'jsonrpc', 'stores', 'runtime.ts', 'yaml'],
  auth: ['jsonrpc', 'runtime.ts', 'jose'],
  bundled: ['index.ts', 'stdio.ts', 'version.ts'],
  harness: ['client', 'framing', 'jsonrpc', 'protocol', 'schema', 'server', 'transports'],
  http: ['auth', 'jsonrpc', 'schema', 'server', 'stores', 'transports', 'runtime.ts'],
  capture: ['framing', 'jsonrpc', 'protocol', 'schema', 'runtime.ts'],
  tap: ['capture', 'auth/loopback.ts', 'runtime.ts', 'version.ts'],
  check: ['capture', 'framing', 'protocol', 'schema', 'tap', 'transports', 'version.ts'],
  workbench: ['capture', 'framing', 'protocol', 'schema', 'preact', '@preact', 'uplot'],
  telemetry: ['jsonrpc', 'protocol', 'schema', 'version.ts', 'auth/loopback.ts', '@opentelemetry'],
  hosts: ['jsonrpc', 'yaml'],
  cli: 'any',
}

/** Files that may use Node: its modules (`node:*`), `process` and what leads to them. All others run in any runtime. */
export const MAY_USE_NODE =
  /^(?:transports\/(?:stdio-|streams\.ts|http\/(?:client\/)?node)|(?:stdio|runtime|journal)\.ts$|stores\/journal\/|telemetry\/node-|extensions\/apps\/page-file|extensions\/skills\/(?:skill-folder|folder-watch)\.ts|cli|check\/|tap\/|workbench\/server\/|hosts\/|harness\/|bundled\/)/

/**
 * Files that are bundled together. `core` is what a server loads before its first response: `ccmcp` and `ccmcp/stdio`
 * are that one file. What is needed later, or by clients only, stays out of it.
 */
export const CHUNKS = {
  core: /^(?:framing\/(?!event-stream)|(?:jsonrpc|schema)\/|protocol\/(?!extension)|server\/(?!asking|extension|features\/completion)|transports\/(?:faults|log-writer|stdio-log|stdio-wire|streams)\.ts|(?:index|stdio|serving|runtime|version|is-object)\.ts)/,
  // Not in cli.js: no chunk may import the entry, which would start it a second time under another name.
  'default-server': /^cli\/(?:default-server|token-path)\.ts/,
  // After it: a chunk takes along what its files import, unless another chunk before it has that.
  options: /^cli\/(?:options|command|servers|settings)\.ts/,
  // Used by servers and by clients, which do not load each other.
  'http-messages':
    /^(?:auth\/principal|framing\/event-stream|transports\/http\/(?:session-id|client\/parameter-headers))\.ts/,
  'extension-rules': /^protocol\/extension/,
  connecting: /^(?:client\/(?!auth\/)|client\.ts|transports\/stdio-(?:client|diagnosis))/,
}
