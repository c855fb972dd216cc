import { revision20251125 } from './2025-11-25.js'
import { revise } from './revision.js'

/** https://modelcontextprotocol.io/specification/2026-07-28/changelog */
export const revision20260728 = revise(revision20251125, {
  id: '2026-07-28',
  lifecycle: 'stateless',
  typedResults: true,
  structuredContent: 'any',
  resourceNotFound: -32602,
  polling: false,
  asksBy: 'result',
  urlElicitation: 'plain',
  methods: {
    clientRequests: ['server/discover', 'subscriptions/listen'],
    serverNotifications: ['notifications/subscriptions/acknowledged'],
  },
  removed: {
    methods: {
      clientRequests: [
        'initialize',
        'ping',
        'logging/setLevel',
        'resources/subscribe',
        'resources/unsubscribe',
      ],
      clientNotifications: [
        'notifications/initialized',
        'notifications/progress',
        'notifications/roots/list_changed',
      ],
      // Servers ask by `input_required` results instead.
      serverRequests: ['ping', 'sampling/createMessage', 'roots/list', 'elicitation/create'],
      serverNotifications: ['notifications/elicitation/complete'],
    },
  },
  unsupportedMethods: {},
})
