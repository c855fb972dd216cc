import { toBase64 } from '../../jsonrpc/base64.js'
import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import type { AskContext } from '../ask.js'
import type { Recorded } from './steps.js'

/** The content of `requestState`, which the client stores between two requests. */
export interface State {
  /** The id of this state, for `state.once`. */
  readonly id: string
  /** The key of the call, the same in all of its requests. */
  readonly key: string
  readonly attempt: number
  readonly expires: number
  /** Digest of what it is bound to. */
  readonly binding: string
  /** The digests of the questions that were asked, by key. */
  readonly asked: Readonly<Record<string, string>>
  /** The answers so far: by key, then by the digest of the question. */
  readonly answers: Answered
  readonly steps: Readonly<Record<string, Recorded>>
}
type Answered = Readonly<Record<string, Readonly<Record<string, unknown>>>>

const PURPOSE = 'requestState'

/** Encrypts a state; throws if it is too large. */
export async function encryptState({ state }: AskContext, content: State): Promise<string> {
  const text = await state.cipher.encrypt(JSON.stringify(content), PURPOSE)
  if (text.length > state.maxBytes)
    throw new TypeError(
      `The state of this call is too large: ${text.length} of at most ${state.maxBytes} bytes; return less from its steps`,
    )
  return text
}

/**
 * Decrypts a state that the client has sent back. An invalid state is the
 * caller's error; the call is never silently started again.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
 */
export async function decryptState(
  { state, binding }: AskContext,
  encrypted: unknown,
): Promise<State> {
  if (typeof encrypted !== 'string') throw invalidState('it must be a string')
  if (encrypted.length > state.maxBytes)
    throw invalidState(`it has more than ${state.maxBytes} bytes`)
  const text = await state.cipher.decrypt(encrypted, PURPOSE, state.maxBytes)
  if (text === undefined) throw invalidState('it was not created by this server, or was modified')
  const content = JSON.parse(text) as State // nobody else can have encrypted it
  if (content.expires <= Date.now()) throw invalidState('it has expired')
  if (content.binding !== (await digest(binding)))
    throw invalidState('it belongs to another request, caller or version of this server')
  if (state.once !== undefined && !(await state.once.consume(content.id, content.expires)))
    throw invalidState('it has been used already')
  return content
}

function invalidState(reason: string): RpcError {
  return new RpcError(
    INVALID_PARAMS,
    `Invalid params: this requestState cannot be used: ${reason}. Send the request again without it`,
  )
}

/** A digest of any JSON, the same for any order of its keys. */
export async function digest(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(canonical(value))
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return toBase64(hash)
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    // 1e400 is parsed as Infinity, which must differ from null and from any string.
    if (typeof member === 'number' && !Number.isFinite(member)) return `\0${member}`
    if (typeof member === 'string' && member.startsWith('\0')) return `\0${member}`
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
