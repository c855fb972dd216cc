import type { Connection } from './connection.js'
import { asPairs, asText } from './replies.js'

const OLDEST = 7

/** What in the settings of Redis can lose data, as sentences. */
export async function settingsWarnings(connection: Connection): Promise<string[]> {
  const info = asText(await connection.command(['INFO', 'server'])) ?? ''
  const warnings = versionWarnings(info)
  const settings = new Map<string, unknown>()
  for (const name of ['maxmemory-policy', 'appendonly', 'appendfsync'])
    for (const [key, value] of asPairs(await connection.command(['CONFIG', 'GET', name])))
      settings.set(key, value)
  const policy = asText(settings.get('maxmemory-policy'))
  const appendonly = asText(settings.get('appendonly'))
  const appendfsync = asText(settings.get('appendfsync'))
  if (policy !== undefined && policy !== 'noeviction')
    warnings.push(
      `Redis has "maxmemory-policy ${policy}": it may evict sessions. Set it to noeviction`,
    )
  if (appendonly !== undefined && appendonly !== 'yes')
    warnings.push(
      `Redis has "appendonly ${appendonly}": a restart may lose sessions. Set it to yes`,
    )
  else if (appendfsync !== undefined && appendfsync !== 'always')
    warnings.push(
      `Redis has "appendfsync ${appendfsync}": a failure of its machine may lose the last second. Set it to always where that matters`,
    )
  return warnings
}

function versionWarnings(info: string): string[] {
  const [, version] = /^redis_version:(\S+)/m.exec(info) ?? []
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST) return []
  return [`Redis ${version} is older than ${OLDEST}.0, the oldest version that is tested`]
}
