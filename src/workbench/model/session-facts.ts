import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  PROTOCOL_VERSION,
  SERVER_INFO,
} from '../../protocol/meta.js'
import { isObject } from '../../schema/issue.js'
import type { CaptureIndex } from './capture-index.js'
import { type CaptureBytes, frameJson } from './frame-detail.js'

/** One side of a connection, as it describes itself. */
export interface Party {
  name: string
  version: string
  /** The names of its capabilities, with those inside them: `tools`, `tools.listChanged`. */
  capabilities: string[]
}

/** What a handshake, or the first stateless request, says. */
export interface SessionFacts {
  row: number
  method: string
  /** What the client asked for, and what is used. */
  requested: string | undefined
  revision: string | undefined
  client: Party | undefined
  server: Party | undefined
  instructions: string | undefined
}

const MAX_NAMES = 200

export async function sessionFacts(
  index: CaptureIndex,
  file: CaptureBytes,
): Promise<SessionFacts[]> {
  const facts: SessionFacts[] = []
  for (const row of index.handshakes) {
    const peer = index.rows.peer(row)
    const params = member(await frameJson(index, row, file), 'params')
    const response = peer === undefined ? undefined : await frameJson(index, peer, file)
    const result = member(response, 'result')
    const meta = member(params, '_meta')
    const requested = member(params, 'protocolVersion') ?? member(meta, PROTOCOL_VERSION)
    facts.push({
      row,
      method: index.rows.method(row) ?? '',
      requested: text(requested),
      revision: text(member(result, 'protocolVersion')) ?? index.rows.revision(peer ?? row),
      client: partyOf(
        member(params, 'clientInfo') ?? member(meta, CLIENT_INFO),
        member(params, 'capabilities') ?? member(meta, CLIENT_CAPABILITIES),
      ),
      server: partyOf(
        member(result, 'serverInfo') ?? member(member(result, '_meta'), SERVER_INFO),
        member(result, 'capabilities'),
      ),
      instructions: text(member(result, 'instructions')),
    })
  }
  return facts
}

function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function partyOf(info: unknown, capabilities: unknown): Party | undefined {
  if (info === undefined && capabilities === undefined) return undefined
  return {
    name: text(member(info, 'title')) ?? text(member(info, 'name')) ?? '',
    version: text(member(info, 'version')) ?? '',
    capabilities: namesOf(capabilities).slice(0, MAX_NAMES),
  }
}

function namesOf(capabilities: unknown): string[] {
  if (!isObject(capabilities)) return []
  return Object.entries(capabilities).flatMap(([name, value]) => {
    const inner = isObject(value) ? Object.keys(value).filter((each) => value[each] !== false) : []
    return [name, ...inner.map((each) => `${name}.${each}`)]
  })
}
