/** A reference to a failure: sent to a remote caller instead of the reason, which is in the log with it. */
export function reference(): string {
  return crypto.randomUUID().slice(0, 8)
}
