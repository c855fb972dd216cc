/*
 * The number of capitalised keywords of each page of the specification, per
 * revision. The rows of a page must add up to its number, so that a missing
 * requirement is noticed.
 */
export const pages: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  basic: {
    '2024-11-05': 2,
    '2025-03-26': 15,
    '2025-06-18': 18,
    '2025-11-25': 31,
    '2026-07-28': 65,
  },
  'basic/authorization': {
    '2025-03-26': 35,
    '2025-06-18': 57,
    '2025-11-25': 101,
    '2026-07-28': 61,
  },
  'basic/authorization/authorization-server-discovery': { '2026-07-28': 15 },
  'basic/authorization/client-registration': { '2026-07-28': 24 },
  'basic/authorization/security-considerations': { '2026-07-28': 34 },
  'basic/lifecycle': { '2024-11-05': 16, '2025-03-26': 20, '2025-06-18': 20, '2025-11-25': 20 },
  'basic/messages': { '2024-11-05': 9 },
  'basic/transports': {
    '2024-11-05': 12,
    '2025-03-26': 41,
    '2025-06-18': 45,
    '2025-11-25': 53,
    '2026-07-28': 5,
  },
  'basic/utilities/cancellation': {
    '2024-11-05': 8,
    '2025-03-26': 8,
    '2025-06-18': 8,
    '2025-11-25': 9,
  },
  'basic/utilities/ping': { '2024-11-05': 7, '2025-03-26': 7, '2025-06-18': 7, '2025-11-25': 7 },
  'basic/utilities/progress': {
    '2024-11-05': 7,
    '2025-03-26': 8,
    '2025-06-18': 8,
    '2025-11-25': 11,
  },
  'client/roots': {
    '2024-11-05': 8,
    '2025-03-26': 8,
    '2025-06-18': 8,
    '2025-11-25': 8,
    '2026-07-28': 8,
  },
  'client/sampling': {
    '2024-11-05': 9,
    '2025-03-26': 9,
    '2025-06-18': 9,
    '2025-11-25': 19,
    '2026-07-28': 23,
  },
  '': { '2024-11-05': 10, '2025-03-26': 10, '2025-06-18': 10, '2025-11-25': 10, '2026-07-28': 10 },
  'server/prompts': {
    '2024-11-05': 9,
    '2025-03-26': 10,
    '2025-06-18': 10,
    '2025-11-25': 10,
    '2026-07-28': 13,
  },
  'server/resources': {
    '2024-11-05': 9,
    '2025-03-26': 9,
    '2025-06-18': 10,
    '2025-11-25': 10,
    '2026-07-28': 17,
  },
  'server/tools': {
    '2024-11-05': 6,
    '2025-03-26': 7,
    '2025-06-18': 11,
    '2025-11-25': 18,
    '2026-07-28': 36,
  },
  'server/utilities/completion': {
    '2024-11-05': 3,
    '2025-03-26': 5,
    '2025-06-18': 5,
    '2025-11-25': 5,
    '2026-07-28': 6,
  },
  'server/utilities/logging': {
    '2024-11-05': 5,
    '2025-03-26': 5,
    '2025-06-18': 5,
    '2025-11-25': 5,
    '2026-07-28': 9,
  },
  'server/utilities/pagination': {
    '2024-11-05': 5,
    '2025-03-26': 5,
    '2025-06-18': 5,
    '2025-11-25': 5,
    '2026-07-28': 7,
  },
  'client/elicitation': { '2025-06-18': 10, '2025-11-25': 56, '2026-07-28': 48 },
  'basic/patterns/cancellation': { '2026-07-28': 17 },
  'basic/patterns': { '2026-07-28': 1 },
  'basic/patterns/mrtr': { '2026-07-28': 26 },
  'basic/patterns/progress': { '2026-07-28': 8 },
  'basic/patterns/subscriptions': { '2026-07-28': 8 },
  'basic/transports/stdio': { '2026-07-28': 17 },
  'basic/transports/streamable-http': { '2026-07-28': 76 },
  'basic/versioning': { '2026-07-28': 9 },
  'server/discover': { '2026-07-28': 5 },
  'server/utilities/caching': { '2026-07-28': 20 },
  'extensions/tasks': { '2026-07-28': 58 },
}

/** Pages without rows, and why. */
export const leftOut: Readonly<Record<string, string>> = {
  'basic/utilities/tasks':
    'tasks are experimental in 2025-11-25 and replaced by an extension in the next revision; ccmcp does not implement them',
  schema:
    'generated from the schemas, which validate every message in the tests; its comments repeat the pages',
  changelog: 'it repeats the pages',
  deprecated: 'it is about future removals',
}
