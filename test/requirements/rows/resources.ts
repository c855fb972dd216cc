import { all, handshake, modern, revisions, type Row } from '../row.js'

const here = (anchor: string, dates: readonly string[]) => ({
  [`server/resources#${anchor}`]: dates,
})

export const resources: readonly Row[] = [
  {
    id: 'resources.capability',
    levels: ['MUST'],
    at: here('capabilities', all),
    says: 'A server with resources declares the `resources` capability.',
  },
  {
    id: 'resources.list',
    levels: ['MUST', 'MUST NOT'],
    at: here('capabilities', modern),
    says: 'What `resources/list` answers is what is available to the caller, the same on every connection and whatever else was asked on it.',
  },
  {
    id: 'resources.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', all),
    says: 'When the resources change, clients are told.',
  },
  {
    id: 'resources.https-only-if-fetchable',
    levels: ['SHOULD'],
    at: here('https%3A%2F%2F', all),
    says: '`https:` is for what a client can fetch by itself.',
    unbound: 'author',
  },
  {
    id: 'resources.https-else-other',
    levels: ['SHOULD'],
    at: here('https%3A%2F%2F', all),
    says: 'For anything else another scheme is better.',
    unbound: 'author',
  },
  {
    id: 'resources.custom-schemes',
    levels: ['MUST'],
    at: here('custom-uri-schemes', revisions('2025-06-18')),
    says: 'A scheme of its own follows RFC 3986.',
  },
  {
    id: 'resources.errors',
    levels: ['SHOULD'],
    at: here('error-handling', handshake),
    says: 'A resource that is not there is −32002, an internal error −32603.',
  },
  {
    id: 'resources.not-found',
    levels: ['MUST', 'SHOULD'],
    at: here('error-handling', modern),
    says: 'A resource that is not there is −32602, an internal error −32603.',
  },
  {
    id: 'resources.older-code',
    levels: ['SHOULD'],
    at: here('error-handling', modern),
    says: 'Clients also take −32002 for a resource that is not there.',
    unbound: 'client',
  },
  {
    id: 'resources.never-empty',
    levels: ['MUST NOT'],
    at: here('error-handling', modern),
    says: 'Empty `contents` do not stand for a resource that is not there.',
  },
  {
    id: 'resources.validate-uris',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'Every URI is checked.',
  },
  {
    id: 'resources.access',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Who may see a sensitive resource can be controlled.',
  },
  {
    id: 'resources.binary',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'Bytes are encoded properly.',
  },
  {
    id: 'resources.permissions',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Permissions are checked before a resource is used.',
  },
  {
    id: 'resources.traversal',
    levels: ['MUST'],
    at: here('security-considerations', modern),
    says: 'A path of a `file:` resource cannot walk out of its folder.',
  },
]
