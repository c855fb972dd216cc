import { parseUrl } from '../runtime.js'

interface Format {
  description: string
  matches(text: string): boolean
}

/** The formats of text in a form. */
export const FORMATS: Readonly<Record<string, Format>> = {
  email: {
    description: 'an e-mail address, such as ada@example.com',
    matches: (text) => /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)*$/.test(text),
  },
  uri: {
    description: 'a URI, such as https://example.com/',
    matches: (text) => /^[a-z][a-z\d+.-]*:\S+$/i.test(text) && parseUrl(text) !== undefined,
  },
  date: { description: 'a date as YYYY-MM-DD', matches: isDate },
  'date-time': {
    description: 'a date and time as YYYY-MM-DDThh:mm:ssZ',
    matches: (text) => {
      const [, date = '', time = ''] =
        /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))$/i.exec(text) ?? []
      return isDate(date) && !Number.isNaN(Date.parse(`${date}T${time.toUpperCase()}`))
    },
  },
}

/** `Date` would turn 30 February into 1 March. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}
