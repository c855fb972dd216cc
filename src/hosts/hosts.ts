import { homedir } from 'node:os'
import { basename, isAbsolute, join, resolve } from 'node:path'

/** A configuration file of a host, and the tables in it that have servers by name. */
export interface ConfigPlace {
  readonly path: string
  readonly tables: readonly (readonly string[])[]
}

interface Folders {
  /** The working directory: where the project is. */
  readonly project: string
  readonly home: string
  /** The configuration of applications: `~/.config`, or what the system has instead. */
  readonly config: string
  readonly environment: NodeJS.ProcessEnv
}

const SERVERS = [['mcpServers']]

/** Where each host has its configuration; what is nearest to the project comes first. */
const HOSTS: Readonly<Record<string, (folders: Folders) => ConfigPlace[]>> = {
  'claude-code': ({ project, home, environment }) => [
    // `claude mcp add` writes there unless it is told otherwise.
    { path: claudeFile(home, environment), tables: [['projects', project, 'mcpServers']] },
    { path: join(project, '.mcp.json'), tables: SERVERS },
    { path: claudeFile(home, environment), tables: SERVERS },
  ],
  'claude-desktop': ({ config }) => [
    { path: join(config, 'Claude', 'claude_desktop_config.json'), tables: SERVERS },
  ],
  vscode: ({ project, config }) => [
    { path: join(project, '.vscode', 'mcp.json'), tables: [['servers']] },
    { path: join(config, 'Code', 'User', 'mcp.json'), tables: [['servers']] },
  ],
  cursor: ({ project, home }) => inBoth('.cursor/mcp.json', project, home),
  codex: ({ project, home, environment }) =>
    [join(project, '.codex'), environment['CODEX_HOME'] ?? join(home, '.codex')].map((folder) => ({
      path: join(folder, 'config.toml'),
      tables: [['mcp_servers']],
    })),
  gemini: ({ project, home }) => inBoth('.gemini/settings.json', project, home),
  qwen: ({ project, home }) => inBoth('.qwen/settings.json', project, home),
  opencode: ({ project, home, environment }) =>
    [project, join(project, '.opencode'), join(xdgConfig(home, environment), 'opencode')]
      .flatMap((folder) => [join(folder, 'opencode.json'), join(folder, 'opencode.jsonc')])
      .map((path) => ({ path, tables: [['mcp', 'servers'], ['mcp']] })),
  copilot: ({ project, home }) =>
    [
      join(project, '.mcp.json'),
      join(project, '.github', 'mcp.json'),
      join(home, '.copilot', 'mcp-config.json'),
    ].map((path) => ({ path, tables: SERVERS })),
  zed: ({ project, home, config, environment }) =>
    [join(project, '.zed'), join(xdgConfig(home, environment), 'zed'), join(config, 'Zed')].map(
      (folder) => ({ path: join(folder, 'settings.json'), tables: [['context_servers']] }),
    ),
  windsurf: ({ home }) => [
    { path: join(home, '.codeium', 'windsurf', 'mcp_config.json'), tables: SERVERS },
  ],
  cline: ({ home, config }) =>
    [
      join(config, 'Code', 'User', 'globalStorage', 'saoudrizwan.claude-dev'),
      join(home, '.cline', 'data'),
    ].map((folder) => ({
      path: join(folder, 'settings', 'cline_mcp_settings.json'),
      tables: SERVERS,
    })),
  kiro: ({ project, home }) => inBoth('.kiro/settings/mcp.json', project, home),
  kimi: ({ project, home, environment }) =>
    [
      join(project, '.kimi-code'),
      environment['KIMI_CODE_HOME'] ?? join(home, '.kimi-code'),
      join(home, '.kimi'),
    ].map((folder) => ({ path: join(folder, 'mcp.json'), tables: SERVERS })),
  goose: ({ project, home, config, environment }) =>
    [
      join(project, '.goose', 'config.yaml'),
      join(xdgConfig(home, environment), 'goose', 'config.yaml'),
      join(config, 'Block', 'goose', 'config', 'config.yaml'),
    ].map((path) => ({ path, tables: [['extensions']] })),
}

export const HOST_NAMES: readonly string[] = Object.keys(HOSTS)

/** The tables that a file of any host may have. */
const ALL_TABLES = [
  ['mcpServers'],
  ['servers'],
  ['mcp', 'servers'],
  ['mcp'],
  ['mcp_servers'],
  ['context_servers'],
  ['extensions'],
]

function inBoth(path: string, project: string, home: string): ConfigPlace[] {
  return [project, home].map((folder) => ({
    path: join(folder, ...path.split('/')),
    tables: SERVERS,
  }))
}

function claudeFile(home: string, environment: NodeJS.ProcessEnv): string {
  return join(environment['CLAUDE_CONFIG_DIR'] ?? home, '.claude.json')
}

function xdgConfig(home: string, environment: NodeJS.ProcessEnv): string {
  const folder = environment['XDG_CONFIG_HOME'] ?? ''
  return isAbsolute(folder) ? folder : join(home, '.config')
}

function appConfig(home: string, environment: NodeJS.ProcessEnv, platform: string): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return environment['APPDATA'] ?? join(home, 'AppData', 'Roaming')
  return xdgConfig(home, environment)
}

/** The configuration files of a host, whether they exist or not; of a path, that file. Undefined if there is no such host. */
export function placesOf(
  host: string,
  {
    project = process.cwd(),
    home = homedir(),
    environment = process.env,
    platform = process.platform,
  }: {
    project?: string
    home?: string
    environment?: NodeJS.ProcessEnv
    platform?: string
  } = {},
): ConfigPlace[] | undefined {
  const known = Object.hasOwn(HOSTS, host) ? HOSTS[host] : undefined
  if (known === undefined)
    return /[\\/]|\.(?:jsonc?|toml|ya?ml)$/i.test(host)
      ? [{ path: resolve(project, host), tables: ALL_TABLES }]
      : undefined
  const config = appConfig(home, environment, platform)
  const places = known({ project, home, config, environment })
  const seen = new Set<string>()
  return places.filter((place) => {
    const key = JSON.stringify(place)
    return !seen.has(key) && seen.add(key)
  })
}

/** The format of a file, by its name. */
export function formatOf(path: string): 'jsonc' | 'toml' | 'yaml' {
  if (/\.toml$/i.test(basename(path))) return 'toml'
  return /\.ya?ml$/i.test(basename(path)) ? 'yaml' : 'jsonc'
}
