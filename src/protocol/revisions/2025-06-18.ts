import { revision20250326 } from './2025-03-26.js'
import { revise } from './revision.js'

/** https://modelcontextprotocol.io/specification/2025-06-18/changelog */
export const revision20250618 = revise(revision20250326, {
  id: '2025-06-18',
  batches: false,
  versionHeader: true,
  methods: { serverRequests: ['elicitation/create'] },
  contentTypes: ['resource_link'],
  structuredContent: 'object',
  fields: {
    tool: ['title', 'outputSchema', '_meta'],
    implementation: ['title'],
    annotations: ['lastModified'],
    text: ['_meta'],
    image: ['_meta'],
    audio: ['_meta'],
    resource_link: [
      'type',
      'uri',
      'name',
      'title',
      'description',
      'mimeType',
      'annotations',
      'size',
      '_meta',
    ],
    resource: ['_meta'],
    resourceContents: ['_meta'],
    resourceListing: ['title', '_meta'],
    resourceTemplate: ['title', '_meta'],
    prompt: ['title', '_meta'],
    promptArgument: ['title'],
    completion: ['context'],
    formString: ['type', 'title', 'description', 'minLength', 'maxLength', 'format'],
    formNumber: ['type', 'title', 'description', 'minimum', 'maximum'],
    formBoolean: ['type', 'title', 'description', 'default'],
    formEnum: ['type', 'title', 'description', 'enum', 'enumNames'],
    root: ['_meta'],
  },
})
