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
    says: 'What `prompts/list` answers is what is available to the caller, the same on every connection and whatever else was asked on it.',
  },
  {
    id: 'prompts.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', handshake),
    says: 'When the prompts change, clients are told.',
  },
  {
    id: 'prompts.list-changed-stream',
    levels: ['SHOULD'],
    at: here('list-changed-notification', modern),
    says: 'When the prompts change, streams that asked for it are told.',
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
    says: 'Arguments are checked before a prompt is built.',
  },
  {
    id: 'prompts.client-pages',
    levels: ['SHOULD'],
    at: here('implementation-considerations', all),
    says: 'Clients turn pages of long lists.',
    unbound: 'client',
  },
  {
    id: 'prompts.respect-capabilities',
    levels: ['SHOULD'],
    at: here('implementation-considerations', all),
    says: 'What was not declared is not used.',
  },
  {
    id: 'prompts.injection',
    levels: ['MUST'],
    at: here('security', all),
    says: 'What goes into a prompt and what comes out of it is checked.',
  },
]
