/** A half-open range of byte positions. */
export interface ByteRange {
  start: number
  end: number
}

export const PANELS = ['message', 'findings', 'latency', 'session'] as const
export type Panel = (typeof PANELS)[number]

/** What the fragment of the address says: a link to it shows the same. */
export interface Link {
  token: string
  filter: string
  row: number | undefined
  /** Selected bytes, counted from the first byte of the direction. */
  bytes: ByteRange | undefined
  panel: Panel
}

export function parseLink(fragment: string): Link {
  const values = new URLSearchParams(fragment.replace(/^#/, ''))
  const [, start, end] = /^(\d{1,15})-(\d{1,15})$/.exec(values.get('bytes') ?? '') ?? []
  const panel = PANELS.find((each) => each === values.get('panel'))
  return {
    token: values.get('token') ?? '',
    filter: values.get('filter') ?? '',
    row: /^\d{1,10}$/.test(values.get('row') ?? '') ? Number(values.get('row')) : undefined,
    bytes: start === undefined ? undefined : { start: Number(start), end: Number(end) },
    panel: panel ?? 'message',
  }
}

export function formatLink({ token, filter, row, bytes, panel }: Link): string {
  const values = new URLSearchParams()
  if (token !== '') values.set('token', token)
  if (row !== undefined) values.set('row', String(row))
  if (bytes !== undefined) values.set('bytes', `${bytes.start}-${bytes.end}`)
  if (filter !== '') values.set('filter', filter)
  if (panel !== 'message') values.set('panel', panel)
  return `#${values.toString()}`
}
