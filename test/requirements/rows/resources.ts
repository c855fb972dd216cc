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
    says: '`resources/list` returns what is available to the caller, independent of the connection and of earlier requests.',
  },
  {
    id: 'resources.list-changed',
    levels: ['SHOULD'],
    at: here('list-changed-notification', all),
    says: 'Clients are notified when the list of resources changes.',
  },
  {
    id: 'resources.https-only-if-fetchable',
    levels: ['SHOULD'],
    at: here('https%3A%2F%2F', all),
    says: '`https:` is for resources that a client can fetch directly.',
    unbound: 'author',
  },
  {
    id: 'resources.https-else-other',
    levels: ['SHOULD'],
    at: here('https%3A%2F%2F', all),
    says: 'Other resources use another scheme.',
    unbound: 'author',
  },
  {
    id: 'resources.custom-schemes',
    levels: ['MUST'],
    at: here('custom-uri-schemes', revisions('2025-06-18')),
    says: 'Custom schemes follow RFC 3986.',
  },
  {
    id: 'resources.errors',
    levels: ['SHOULD'],
    at: here('error-handling', handshake),
    says: 'A resource that does not exist is −32002, an internal error −32603.',
  },
  {
    id: 'resources.not-found',
    levels: ['MUST', 'SHOULD'],
    at: here('error-handling', modern),
    says: 'A resource that does not exist is −32602, an internal error −32603.',
  },
  {
    id: 'resources.older-code',
    levels: ['SHOULD'],
    at: here('error-handling', modern),
    says: 'Clients also accept −32002 for a resource that does not exist.',
  },
  {
    id: 'resources.never-empty',
    levels: ['MUST NOT'],
    at: here('error-handling', modern),
    says: 'Empty `contents` are not returned for a resource that does not exist.',
  },
  {
    id: 'resources.validate-uris',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'Every URI is validated.',
  },
  {
    id: 'resources.access',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Access to sensitive resources can be controlled.',
  },
  {
    id: 'resources.binary',
    levels: ['MUST'],
    at: here('security-considerations', all),
    says: 'Binary data is properly encoded.',
  },
  {
    id: 'resources.permissions',
    levels: ['SHOULD'],
    at: here('security-considerations', all),
    says: 'Permissions are checked before an operation.',
  },
  {
    id: 'resources.traversal',
    levels: ['MUST'],
    at: here('security-considerations', modern),
    says: '`file:` resources are protected against path traversal.',
  },
]
