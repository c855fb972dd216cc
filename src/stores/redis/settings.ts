import type { Connection } from './connection.js'
import { asPairs, asText } from './replies.js'

const OLDEST = 7

/** Warns once of settings of Redis that can lose data, however many stores use it. */
export class SettingsCheck {
  #checked = false

  async warn(
    connection: Connection,
    report: (entry: { level: 'warning'; message: string; error?: unknown }) => void,
  ): Promise<void> {
    if (this.#checked) return
    this.#checked = true
    try {
      for (const message of await settingsWarnings(connection))
        report({ level: 'warning', message })
    } catch (error) {
      report({ level: 'warning', message: 'The settings of Redis could not be checked', error })
    }
  }
}

/** What in the settings of Redis can lose data, as sentences. */
async function settingsWarnings(connection: Connection): Promise<string[]> {
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
      `Redis has "maxmemory-policy ${policy}": it may evict sessions and tasks. Set it to noeviction`,
    )
  if (appendonly !== undefined && appendonly !== 'yes')
    warnings.push(
      `Redis has "appendonly ${appendonly}": a restart may lose sessions and tasks. Set it to yes`,
    )
  else if (appendfsync !== undefined && appendfsync !== 'always')
    warnings.push(
      `Redis has "appendfsync ${appendfsync}": if its machine crashes, the latest writes are lost (about a second with everysec, more with no). Set it to always if that matters`,
    )
  return warnings
}

function versionWarnings(info: string): string[] {
  const [, version] = /^redis_version:(\S+)/m.exec(info) ?? []
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST) return []
  return [`Redis ${version} is older than ${OLDEST}.0, the oldest version that is tested`]
}
