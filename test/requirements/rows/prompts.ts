import { all, handshake, modern, revisions, type Row } from '../row.js'

const here = (anchor: string, dates: readonly string[]) => ({ [`server/prompts#${anchor}`]: dates })

export const prompts: readonly Row[] = [
  {
    id: 'prompts.capability',
    levels: ['MUST'],
    at: here('capabilities', all),
    says: 'A server with prompts declares the `prompts` capability.',
  },
  {
    id: 'prompts.list',
    levels: ['MUST', 'MUST NOT'],
    at: here('capabilities', modern),
    says: '`prompts/list` returns what is available to the caller, independent of the connection and of earlier requests.',
  },
  {
    id: 'prompts.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', handshake),
    says: 'Clients are notified when the list of prompts changes.',
  },
  {
    id: 'prompts.list-changed-stream',
    levels: ['SHOULD'],
    at: here('list-changed-notification', modern),
    says: 'Subscription streams that requested it are notified when the list of prompts changes.',
  },
  {
    id: 'prompts.image',
    levels: ['MUST'],
    at: here('image-content', all),
    says: 'An image is base64 and has a MIME type.',
  },
  {
    id: 'prompts.audio',
    levels: ['MUST'],
    at: here('audio-content', revisions('2025-03-26')),
    says: 'Audio is base64 and has a MIME type.',
  },
  {
    id: 'prompts.embedded',
    levels: ['MUST'],
    at: here('embedded-resources', all),
    says: 'An embedded resource has a URI, its MIME type, and text or base64.',
  },
  {
    id: 'prompts.errors',
    levels: ['SHOULD'],
    at: here('error-handling', all),
    says: 'An unknown prompt and missing arguments are −32602, an internal error −32603.',
  },
  {
    id: 'prompts.validate',
    levels: ['SHOULD'],
    at: here('implementation-considerations', all),
    says: 'Arguments are validated before a prompt is built.',
  },
  {
    id: 'prompts.client-pages',
    levels: ['SHOULD'],
    at: here('implementation-considerations', all),
    says: 'Clients handle pagination of long lists.',
  },
  {
    id: 'prompts.respect-capabilities',
    levels: ['SHOULD'],
    at: here('implementation-considerations', all),
    says: 'Capabilities that were not declared are not used.',
  },
  {
    id: 'prompts.injection',
    levels: ['MUST'],
    at: here('security', all),
    says: 'Inputs and outputs of prompts are validated.',
  },
]
