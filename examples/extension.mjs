import { createServer, tool } from 'ccmcp'
import { extension } from 'ccmcp/extensions'

const used = new Map() // tool calls by caller
const listeners = new Set()
const usedBy = ({ principal }) => used.get(principal?.id) ?? 0
const serve = ({ unit }, { client }) => ({ unit, used: usedBy(client) })

const quota = extension({
  id: 'com.example/quota',
  revisions: ['2026-07-28'],
  settings: { limit: 1 },
  methods: { 'quota/get': { nameParam: 'unit', serve } },
  resultTypes: ['quota_exceeded'],
  callTool({ call, caller, settings }, run) {
    if (settings === undefined || call.attempt > 1) return run()
    const count = usedBy(caller) + 1
    if (count > 1) return { resultType: 'quota_exceeded', limit: 1 }
    used.set(caller.principal?.id, count)
    for (const notify of listeners) notify('notifications/quota/changed', { used: count })
    return run()
  },
  listen: {
    quotaChanged(value) {
      let own
      return {
        acknowledged: value === true ? true : undefined,
        start: (notify) => listeners.add((own = notify)),
        stop: () => listeners.delete(own),
      }
    },
  },
})

const greet = tool({ name: 'greet', run: () => 'Hello' })
const options = { name: 'shop', version: '1.0.0', tools: [greet], extensions: [quota] }
export const server = createServer(options)
