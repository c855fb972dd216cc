/** What a transport needs of a client session that is served over a channel. */
export interface ServedChannel {
  /** Refuses new requests, and gives those in progress `deadline` milliseconds. */
  drain(deadline: number): Promise<void>
}
