/** A short id that an internal error and its log line share: the caller sees the id, only the log has the reason. */
export function newErrorReference(): string {
  return crypto.randomUUID().slice(0, 8)
}
