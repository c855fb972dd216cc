import { type ChangeBus, type ChangeReceiver, changeBus } from '../../src/http.js'

/** Processes that are in this one. */
export class ChangeHub {
  readonly #receivers = new Set<ChangeReceiver>()

  bus(): ChangeBus {
    let own: ChangeReceiver | undefined
    return changeBus({
      publish: (changes) => {
        for (const receiver of this.#receivers) if (receiver !== own) receiver.changed(changes)
      },
      open: (receiver) => {
        own = receiver
        this.#receivers.add(receiver)
      },
      close: () => {
        if (own !== undefined) this.#receivers.delete(own)
      },
    })
  }
}
