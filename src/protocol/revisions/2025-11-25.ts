import { revision20250618 } from './2025-06-18.js'
import { revise } from './revision.js'

const TASKS = 'experimental in this revision and replaced by an extension in the next'

/** https://modelcontextprotocol.io/specification/2025-11-25/changelog */
export const revision20251125 = revise(revision20250618, {
  id: '2025-11-25',
  unreadableId: 'omitted',
  polling: true,
  urlElicitation: 'identified',
  samplingTools: true,
  methods: { serverNotifications: ['notifications/elicitation/complete'] },
  unsupportedMethods: {
    'tasks/get': TASKS,
    'tasks/result': TASKS,
    'tasks/list': TASKS,
    'tasks/cancel': TASKS,
    'notifications/tasks/status': TASKS,
  },
  fields: {
    tool: ['icons'],
    implementation: ['description', 'websiteUrl', 'icons'],
    icon: ['src', 'mimeType', 'sizes', 'theme'],
    resource_link: ['icons'],
    resourceListing: ['icons'],
    resourceTemplate: ['icons'],
    prompt: ['icons'],
    formString: ['default'],
    formNumber: ['default'],
    formEnum: ['default', 'oneOf'],
    formMultiEnum: ['type', 'title', 'description', 'minItems', 'maxItems', 'items', 'default'],
    sampling: ['tools', 'toolChoice'],
    samplingMessage: ['_meta'],
  },
})
