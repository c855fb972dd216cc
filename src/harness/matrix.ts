import { type ConnectOptions, connect } from '../client/connect.js'
import type { Client } from '../client/client.js'
import type { Target } from '../client/target.js'
import { revisions } from '../protocol/revisions/index.js'

/** One transport in one protocol revision. */
export interface Cell {
  /** The transport and the revision, for the title of a test. */
  name: string
  transport: string
  revision: string
  /** Why this combination does not exist. */
  absent?: string
  connect(options?: Omit<ConnectOptions, 'revision'>): Promise<Client>
}

/** Reasons by transport, by revision, or by `transport, revision`. */
export type Absent = Readonly<Record<string, string>>

/** Every transport in every revision, to run one scenario in all of them. */
export function matrix(targets: Readonly<Record<string, Target>>, absent: Absent = {}): Cell[] {
  return Object.entries(targets).flatMap(([transport, target]) =>
    revisions.map(({ id: revision }) => {
      const name = `${transport}, ${revision}`
      const reason = absent[name] ?? absent[revision] ?? absent[transport]
      const cell: Cell = {
        name,
        transport,
        revision,
        connect: (options) => connect(target, { ...options, revision }),
      }
      return reason === undefined ? cell : { ...cell, absent: reason }
    }),
  )
}
