import type { ChangeBus, Changes } from '../change-bus.js'
import { changeBus } from '../shared-changes.js'
import type { ChangeStream } from './change-stream.js'
import type { Connection } from './connection.js'

/** Tells the processes of a server of each other's changes. */
export function redisChanges(stream: ChangeStream, connection: Connection): ChangeBus {
  let stop: (() => void) | undefined
  return changeBus({
    publish: (changes) => stream.append(JSON.stringify(changes)),
    open({ changed, report }) {
      connection.open()
      stop = stream.listen({
        changed: (text) => changed(parse(text)),
        missed: () => changed('everything'),
        failed: (error) =>
          report({
            level: 'error',
            message: 'The changes of other processes cannot be read from Redis',
            error,
          }),
      })
    },
    close() {
      stop?.()
      connection.close()
    },
  })
}

/** Another version of this package may write something else. */
function parse(text: string): Changes {
  try {
    return JSON.parse(text) as Changes // checked by the receiver
  } catch {
    return 'everything'
  }
}
