/** A name for a failure: told to a caller instead of its reason, which stands beside it in the log. */
export function reference(): string {
  return crypto.randomUUID().slice(0, 8)
}
