import { revision20241105 } from './2024-11-05.js'
import { revise } from './revision.js'

/** https://modelcontextprotocol.io/specification/2025-03-26/changelog */
export const revision20250326 = revise(revision20241105, {
  id: '2025-03-26',
  batches: true,
  contentTypes: ['audio'],
  fields: {
    tool: ['annotations'],
    toolAnnotations: [
      'title',
      'readOnlyHint',
      'destructiveHint',
      'idempotentHint',
      'openWorldHint',
    ],
    audio: ['type', 'data', 'mimeType', 'annotations'],
    progress: ['message'],
    capabilities: ['completions'],
  },
})
