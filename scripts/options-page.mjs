// Generates docs/options.md from the comments of the options in the sources:
//   node scripts/options-page.mjs > docs/options.md
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Title, introduction, and the interfaces to list: file, name and members to omit. */
const SECTIONS = [
  [
    'createServer(options)',
    'From `ccmcp`; see [features](features.md).',
    [['server/create-server.ts', 'ServerOptions']],
  ],
  [
    'state',
    'The `state` option of `createServer`; see [asking](asking.md).',
    [['server/ask.ts', 'StateOptions']],
  ],
  [
    'tool(definition)',
    'See [tools](tools.md).',
    [
      ['server/define.ts', 'ToolProperties'],
      ['server/define.ts', 'ToolDefinition'],
    ],
  ],
  [
    'resource(definition)',
    'See [resources](resources.md).',
    [
      ['server/define.ts', 'ResourceDefinition'],
      ['server/define.ts', 'ResourceProperties'],
      ['protocol/model.ts', 'ResourceListing', ['uri', 'name', '_meta']],
    ],
  ],
  [
    'prompt(definition)',
    'See [prompts](prompts.md).',
    [
      ['server/define.ts', 'PromptProperties'],
      ['server/define.ts', 'PromptDefinition'],
    ],
  ],
  [
    'arguments of a prompt',
    'The values of `arguments`, by name.',
    [['server/define.ts', 'PromptArgument']],
  ],
  [
    'tasks(options)',
    'From `ccmcp/tasks`: see [tasks](tasks.md).',
    [['extensions/tasks/tasks.ts', 'TasksOptions']],
  ],
  [
    'task of a tool',
    'A mode, or an object with these members.',
    [['extensions/tasks/task-options.ts', 'TaskOptions']],
  ],
  [
    'new MemoryTaskStore(options)',
    'From `ccmcp/tasks`.',
    [['stores/memory-task-store.ts', 'MemoryTaskStoreOptions']],
  ],
  [
    'new JournalTaskStore(path, options)',
    'From `ccmcp/journal`; also with the options of `MemoryTaskStore`.',
    [['stores/journal/journal-task-store.ts', 'JournalTaskStoreOptions']],
  ],
  [
    'redis(client, options)',
    'From `ccmcp/redis`: see [deploying](deploying.md#several-processes-with-redis).',
    [['stores/redis/redis.ts', 'RedisOptions']],
  ],
  [
    'otel(options)',
    'From `ccmcp/telemetry`: see [telemetry](telemetry.md).',
    [['telemetry/otel.ts', 'OtelOptions']],
  ],
  [
    'listenMetrics(metrics, options)',
    'From `ccmcp/prometheus`, which also has `prometheus()`: see [telemetry](telemetry.md#prometheus).',
    [['telemetry/node-metrics.ts', 'MetricsOptions']],
  ],
  [
    'tasks of redis(client, options)',
    'The `tasks` option of `redis`.',
    [['stores/redis/task-store.ts', 'RedisTaskOptions']],
  ],
  [
    'clientTasks(options)',
    'From `ccmcp/tasks`, for the `extensions` of `connect`.',
    [['extensions/tasks/client-tasks.ts', 'ClientTasksOptions']],
  ],
  [
    'app(options)',
    'From `ccmcp/apps`: see [apps](apps.md).',
    [['extensions/apps/app.ts', 'AppOptions']],
  ],
  [
    'csp of an app',
    'Lists of origins, such as `https://api.example.com`.',
    [['extensions/apps/csp.ts', 'AppCsp']],
  ],
  [
    'app of a tool',
    'A page that `app(…)` has made, or an object with these members.',
    [['extensions/apps/apps.ts', 'ToolApp']],
  ],
  [
    'apps(options)',
    'From `ccmcp/apps`, for the `extensions` of `createServer`.',
    [['extensions/apps/apps.ts', 'AppsOptions']],
  ],
  [
    'skills(options)',
    'From `ccmcp/skills`: see [skills](skills.md).',
    [['extensions/skills/skills.ts', 'SkillsOptions']],
  ],
  [
    'clientSkills(options)',
    'From `ccmcp/skills`, for the `extensions` of `connect`.',
    [['extensions/skills/client-skills.ts', 'ClientSkillsOptions']],
  ],
  ['call', 'The second argument of every handler.', [['server/call.ts', 'Call']]],
  [
    'serveStdio(server, options)',
    'From `ccmcp/stdio`.',
    [
      ['stdio.ts', 'StdioOptions'],
      ['serving.ts', 'ServingOptions', ['input', 'output']],
    ],
  ],
  [
    'serve(server, options)',
    'From `ccmcp/stdio`: the same on streams you provide.',
    [
      ['stdio.ts', 'ServeOptions'],
      ['serving.ts', 'ServingOptions'],
    ],
  ],
  [
    'listen(server, options)',
    'From `ccmcp/http`: see [HTTP](http.md). It also takes the options of `httpHandler`.',
    [['http/options.ts', 'ListenOptions']],
  ],
  [
    'httpHandler(server, options)',
    'From `ccmcp/http`.',
    [
      ['http/options.ts', 'HttpHandlerOptions'],
      ['http/options.ts', 'HttpOptions'],
    ],
  ],
  [
    'nodeHandler(server, options)',
    'From `ccmcp/http`, for Express, Fastify or `node:http`. It takes the options of `httpHandler`.',
    [['http/options.ts', 'HttpHandlerOptions']],
  ],
  [
    'legacySse',
    'The `legacySse` option of `listen`, `httpHandler` and `nodeHandler`. See [old clients](http.md#old-clients-httpsse).',
    [['http/options.ts', 'LegacySseOptions']],
  ],
  [
    'limits',
    'The `limits` option of `listen`, `httpHandler` and `nodeHandler`.',
    [['http/options.ts', 'HttpLimits']],
  ],
  [
    'new MemorySessionStore(options)',
    'From `ccmcp/http`: see [deploying](deploying.md).',
    [['stores/session-store.ts', 'MemorySessionStoreOptions']],
  ],
  [
    'new MemoryEventStore(options)',
    'From `ccmcp/http`.',
    [['stores/event-store.ts', 'MemoryEventStoreOptions']],
  ],
  [
    'tokens([known, …])',
    'From `ccmcp/http`: see [authorization](authorization.md).',
    [['auth/tokens.ts', 'StaticToken']],
  ],
  ['oauth(options)', 'From `ccmcp/http`.', [['auth/oauth.ts', 'OAuthOptions']]],
  [
    'connect(target, options)',
    'From `ccmcp/client`.',
    [
      ['client/connect.ts', 'ConnectOptions'],
      ['client/input-handlers.ts', 'InputHandlers'],
    ],
  ],
  [
    'reconnect of connect',
    'See [client](client.md#reconnecting).',
    [['client/reconnect.ts', 'ReconnectOptions']],
  ],
  ['cache of connect', 'See [client](client.md#caching).', [['client/cache.ts', 'CacheOptions']]],
  [
    'extensions of connect',
    'Each is an object. See [client](client.md#extensions).',
    [['client/extension.ts', 'ClientExtension']],
  ],
  [
    'stdio(command, args, options)',
    'From `ccmcp/client`: a server that is started as a child process.',
    [['transports/stdio-client.ts', 'ProcessOptions']],
  ],
  [
    'http(url, options)',
    'From `ccmcp/client`: a server at a URL. See [client](client.md).',
    [['transports/http/client/target.ts', 'HttpClientOptions']],
  ],
  [
    'oauth(options) of a client',
    'From `ccmcp/oauth`, for the option `authorizer` of `http`. See [authorization of a client](client-authorization.md).',
    [['client/auth/options.ts', 'OAuthOptions']],
  ],
  ['client', 'The option `client` of `oauth`.', [['client/auth/registration.ts', 'ClientOptions']]],
  ['key', 'The option `key` of `client`.', [['client/auth/client-authentication.ts', 'ClientKey']]],
  [
    'enterpriseManaged(options)',
    'From `ccmcp/oauth`, for the option `grant` of `oauth`.',
    [['client/auth/grants.ts', 'EnterpriseOptions']],
  ],
  [
    'memory(server, options)',
    'From `ccmcp/client`: a server in the same process. See [testing](testing.md).',
    [['client.ts', 'MemoryOptions']],
  ],
  [
    'callTool(name, args, options)',
    'These options apply to every request of a client; `output` to tools only.',
    [
      ['client/call-options.ts', 'CallOptions'],
      ['client/client.ts', 'ToolCallOptions'],
    ],
  ],
  [
    'tools(options), prompts(options), resources(options), readResource(uri, options)',
    'They also take the options of every request.',
    [['client/cache.ts', 'CachedCallOptions']],
  ],
]

/** The members of an interface: name, type and comment. A comment also applies to the following members without one. */
function membersOf(file, name) {
  const source = readFileSync(join(root, 'src', file), 'utf8')
  const start = new RegExp(`^(?:export )?interface ${name}\\b[^{]*\\{\\n`, 'm').exec(source)
  if (start === null) throw new Error(`${file} has no interface ${name}`)
  // Join members that span several lines.
  const body = source
    .slice(start.index + start[0].length, source.indexOf('\n}', start.index))
    .replace(/,?\n {4,}/g, ' ')
    .replace(/,?\n {2}(?=[)\]}>])/g, '')
  const members = []
  let comment = ''
  for (const part of body.matchAll(
    /^ {2}\/\*\*([\s\S]*?)\*\/|^ {2}(?:readonly )?(\w+)(\?)?((?:<[^\n]*>)?\(.*\)|): (.*)$/gm,
  )) {
    const [, words, member, optional, parameters, type] = part
    if (words !== undefined) {
      comment = words.replace(/\s*\n\s*\*?\s*/g, ' ').trim()
      continue
    }
    members.push({
      name: member,
      required: optional === undefined,
      method: parameters !== '',
      type,
      comment,
    })
  }
  if (members.length === 0) throw new Error(`${name} in ${file} has no members`)
  return members
}

const cell = (text) => text.replaceAll('|', '\\|')

function section([title, below, interfaces]) {
  const rows = new Map()
  for (const [file, name, without = []] of interfaces)
    for (const each of membersOf(file, name))
      if (!without.includes(each.name) && !rows.has(each.name)) rows.set(each.name, each)
  const lines = [...rows.values()].map(({ name, required, method, type, comment }) => {
    if (comment === '') throw new Error(`${name} of ${title} has no comment`)
    const shown = method || type.includes('=>') ? `\`${name}(…)\`` : `\`${name}\``
    // Type names are not shown.
    const kind = /^(?:readonly )?(?:string|number|boolean|'[^']*')[^<{]*$/.test(type)
      ? `\`${cell(type)}\``
      : ''
    return `| ${shown}${required && title !== 'call' ? ' (required)' : ''} | ${kind} | ${cell(comment)} |`
  })
  return `## ${title}\n\n${below}\n\n| | | |\n|---|---|---|\n${lines.join('\n')}\n`
}

export function optionsPage() {
  const head =
    '# Options\n\nOptions are optional unless marked as required. Unknown options are rejected with a suggestion; definitions may have additional members.\n'
  return [head, ...SECTIONS.map(section)].join('\n')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.stdout.write(optionsPage())
