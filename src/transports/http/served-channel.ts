/** A client being served over a channel, as far as a transport has to do with it. */
export interface ServedChannel {
  /** Takes no new work, and gives what is under way so many milliseconds. */
  drain(deadline: number): Promise<void>
}
