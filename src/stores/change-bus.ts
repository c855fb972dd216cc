export type ChangedList = 'tools' | 'resources' | 'prompts'

/** A change that clients can be notified of. It has no content: clients read again what has changed. */
export type SharedChange = { readonly list: ChangedList } | { readonly uri: string }

/** Changes of one process; `everything` if they are too many, or some may have been missed. It can be written as JSON. */
export type Changes =
  | 'everything'
  | { readonly lists: readonly ChangedList[]; readonly uris: readonly string[] }

export interface ChangeReceiver {
  /** Takes changes of another process. What is not valid counts as `everything`. */
  changed(changes: Changes): void
  /** Writes to the log. */
  report(entry: { level: 'info' | 'warning' | 'error'; message: string; error?: unknown }): void
}

/** How changes get to other processes: what `changeBus` makes a `ChangeBus` of. */
export interface ChangeBusDefinition {
  /**
   * Sends changes to all other processes, in the order of the calls. It is called again when its promise has settled;
   * meanwhile changes are collected. If it throws or rejects, it is called again later with the same changes and those
   * that have been made since, so others may get them twice. One that never settles sends no more changes, so a bus over a
   * network needs a timeout. Changes have at most 64 KiB as JSON.
   */
  publish(changes: Changes): void | Promise<void>
  /**
   * Begins to pass the changes of other processes to `receiver`, in their order, and not those of this one. If some
   * may have been missed (before a connection, during one that broke), it passes `everything`. Called when the server is
   * first served, and again when it is served after `close`. What it throws is thrown by the transport; what it rejects
   * with is logged.
   */
  open(receiver: ChangeReceiver): void | Promise<void>
  /** Called when the server is no longer served: closes connections, within a second. `publish` may be called without `open`, and after `close`. */
  close(): void | Promise<void>
}

/** The changes of a server, as a bus sees them. */
export interface ChangePort {
  /** Calls a function with each change that was made in this process. */
  listenLocal(listener: (change: SharedChange) => void): () => void
  /** Notifies the clients of this process. */
  receive(change: SharedChange | { readonly everything: true }): void
}

/** Tells the clients of all processes of a server of the changes in each: `redis(…).changes`, or one made by `changeBus`. */
export interface ChangeBus {
  /** Publishes a change from a process that need not serve the server. Rejects if it could not be published. */
  publish(change: SharedChange): Promise<void>
  /** Connects the server, until the function that this returns is called. Used by transports. */
  share(port: ChangePort, report: ChangeReceiver['report']): () => Promise<void>
}
