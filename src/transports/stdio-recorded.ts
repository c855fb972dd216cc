import type { Wire } from './stdio-wire.js'
import type { Input, Output } from './streams.js'

/** Gets bytes as they are read (`in`) and written (`out`). It must not throw, nor change them. */
export type OnBytes = (dir: 'in' | 'out', bytes: Uint8Array) => void

type Listener = (chunk: Uint8Array | string) => void

/** A wire whose bytes are also given to a function. */
export function recordedWire(wire: Wire, onBytes: OnBytes): Wire {
  return {
    ...wire,
    input: recordedInput(wire.input, onBytes),
    output: recordedOutput(wire.output, onBytes),
  }
}

function recordedInput(input: Input, onBytes: OnBytes): Input {
  const wrapped = new Map<unknown, Listener>()
  const withRecord = (listener: Listener): Listener => {
    const recording: Listener = (chunk) => {
      onBytes('in', typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
      listener(chunk)
    }
    wrapped.set(listener, recording)
    return recording
  }
  return {
    on(event: string, listener: Listener) {
      if (event === 'data') input.on(event, withRecord(listener))
      // The other events have listeners without parameters; the overloads do not accept a union of names.
      else input.on(event as 'end', listener as () => void)
    },
    off(event: string, listener: Listener) {
      if (event === 'data') input.off?.(event, wrapped.get(listener) ?? listener)
      else input.off?.(event as 'end', listener as () => void) // as above
    },
    pause: () => input.pause(),
    resume: () => input.resume(),
    get readableEnded() {
      return input.readableEnded === true
    },
    get destroyed() {
      return input.destroyed === true
    },
  }
}

function recordedOutput(output: Output, onBytes: OnBytes): Output {
  return {
    write(text, done) {
      const hasRoom = output.write(text, done)
      onBytes('out', Buffer.from(text))
      return hasRoom
    },
    on: (event: 'drain' | 'error', listener: (error: Error) => void) =>
      output.on(event as 'error', listener), // the overloads do not accept a union of names
    off: (event: 'drain' | 'error', listener: (error: Error) => void) =>
      output.off?.(event as 'error', listener), // as above
  }
}
