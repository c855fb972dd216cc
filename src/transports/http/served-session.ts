/** What a transport needs of the session of a client, which is served over a channel. */
export interface ServedSession {
  /** Refuses new requests, and gives those in progress `deadline` milliseconds. */
  drain(deadline: number): Promise<void>
  /** The client may have missed changes: it is told of all that it has subscribed to. */
  missedChanges(): void
}
