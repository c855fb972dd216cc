import type { CallOptions } from './call-options.js'

/** A listener for changes that can be removed. */
export interface Subscription extends AsyncDisposable {
  /** Removes the listener. The server is told when it was the last one for its resource. */
  unsubscribe(): Promise<void>
}

export interface ListenOptions extends CallOptions {
  /** Called when the stream has ended, and until `onMissed` nothing is heard; or the server no longer accepts the value. */
  onInterrupted?: () => unknown
  /** Called when the connection was interrupted: notifications may have been missed. */
  onMissed?: () => unknown
}
