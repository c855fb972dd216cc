import { withCode } from '../jsonrpc/errors.js'
import type { Params } from '../jsonrpc/message.js'
import { type List, type Topic, describeTopic } from './subscription-links.js'

/** The field of `subscriptions/listen` for each list. */
const FIELDS: Readonly<Record<List, string>> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
}

/** The method of a client for a field of the core protocol; undefined for one of an extension. */
export function methodForField(field: string): 'watch' | 'subscribe' | undefined {
  if (field === 'resourceSubscriptions') return 'subscribe'
  return Object.values(FIELDS).includes(field) ? 'watch' : undefined
}

/** The filter that asks for these topics. Lists for the same field are sent as one. */
export function filterOf(topics: Iterable<Topic>): Params {
  const filter: Record<string, unknown> = {}
  const lists = new Map<string, Set<unknown>>()
  const addTo = (field: string, items: readonly unknown[]) => {
    const list = lists.get(field) ?? new Set()
    lists.set(field, list)
    for (const item of items) list.add(item)
  }
  for (const topic of topics) {
    if ('uri' in topic) addTo('resourceSubscriptions', [topic.uri])
    else if ('list' in topic) filter[FIELDS[topic.list]] = true
    else if (Array.isArray(topic.value)) addTo(topic.field, topic.value)
    else filter[topic.field] = topic.value
  }
  for (const [field, list] of lists) filter[field] = [...list]
  return filter
}

/** Tells which topics a server has accepted. Of a list, it may accept a part. */
export function acceptedBy(accepted: Params): (topic: Topic) => boolean {
  const lists = new Map<string, ReadonlySet<string>>()
  const listOf = (field: string, items: readonly unknown[]) => {
    const list = lists.get(field) ?? new Set(items.map((item) => JSON.stringify(item)))
    lists.set(field, list)
    return list
  }
  const hasAll = (field: string, values: readonly unknown[]) => {
    const items: unknown = accepted[field]
    if (!Array.isArray(items)) return undefined
    const list = listOf(field, items)
    return values.every((value) => list.has(JSON.stringify(value)))
  }
  return (topic) => {
    if ('list' in topic) return accepted[FIELDS[topic.list]] === true
    if ('uri' in topic) return hasAll('resourceSubscriptions', [topic.uri]) ?? false
    const { field, value } = topic
    const known = Array.isArray(value) ? hasAll(field, value) : undefined
    return known ?? accepted[field] !== undefined
  }
}

export function notAccepted(topic: Topic): Error {
  return withCode(
    'NOT_SUPPORTED',
    new Error(`The server does not send notifications of ${describeTopic(topic)}`),
  )
}
