/** Where a session is served. */
export type SessionLocation =
  /** There is no such session, or it was deleted. */
  | { readonly at: 'nowhere' }
  /** No other process serves it: this one may claim it. `owner` is the process that has served it, or empty. */
  | { readonly at: 'free'; readonly owner: string }
  | { readonly at: 'process'; readonly process: string; readonly address: string }

export interface OwnershipStart {
  /** Where other processes reach this one, as far as the transport knows it: its scheme and port. */
  readonly listening?: { readonly scheme: string; readonly port: number } | undefined
  /** Writes to the log. */
  report(entry: { level: 'info' | 'warning' | 'error'; message: string; error?: unknown }): void
  /** Called when another process may have taken over sessions of this one: it had no lease for a while. */
  lapsed(): void
}

/**
 * Decides which process serves a session, if several share a store. A process owns sessions by a lease, which it
 * renews. By its own clock, the lease ends no later than for others.
 */
export interface SessionOwnership {
  /** The name of this process, new for each start; empty if other processes cannot reach it. */
  readonly process: string
  /** The secret that all processes share, by which they recognize each other's requests. */
  readonly key: string | undefined
  /** Milliseconds after which the lease of a process that has failed ends. */
  readonly lease: number
  /** Begins to renew the lease. Must be called once, before all others. */
  start(options: OwnershipStart): void
  /** Another number after each lapse of the lease; undefined while there is none. Sessions that were confirmed in this term are owned. */
  readonly term: number | undefined
  /** Renews the lease now; resolves with whether there is one. Never rejects. */
  renew(): Promise<boolean>
  /** Whether this process still owns a session that it has with this generation; `missing` if the store has lost it. */
  confirm(name: string, generation: number): Promise<'owned' | 'lost' | 'missing'>
  locate(name: string): Promise<SessionLocation>
  /** Whether a process has a lease. */
  isAlive(process: string): Promise<boolean>
  /** Takes over a free session of `owner` that is stored with generation `from`, as `to`; false if that has changed. Atomic. */
  claim(name: string, from: number, to: number, owner: string): Promise<boolean>
  /** Lets others claim a session. */
  release(name: string, generation: number): Promise<void>
  /** Releases all sessions of this process, and ends its lease. */
  close(): Promise<void>
}
