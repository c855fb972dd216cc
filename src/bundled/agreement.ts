import { type Verb, verbs } from './verbs.js'

/** 0, 1, 2: I, you, he; a plural takes the forms of "you". */
type Person = 0 | 1 | 2

const PRONOUNS: Readonly<Record<string, Person>> = {
  i: 0,
  you: 1,
  we: 1,
  they: 1,
  he: 2,
  she: 2,
  it: 2,
  this: 2,
  that: 2,
  these: 1,
  those: 1,
}
/** One of many is still one. */
const SINGULAR = /^(?:each|every|either|neither|one)\b|^(?:every|some|any|no)(?:one|body|thing)$/
const PLURALS: ReadonlySet<string> = new Set([
  'people',
  'children',
  'men',
  'women',
  'feet',
  'teeth',
  'mice',
  'geese',
  'police',
  'cattle',
])
/** Words in -s that are not plurals: news, bus, glass, analysis, mathematics. */
const NOT_PLURAL = /(?:ss|us|is|ics|news)$/

/** Which forms of a verb a subject takes, by the words alone. */
function personOf(subject: string): Person {
  const words = subject.trim().toLowerCase().split(/\s+/)
  const whole = words.join(' ')
  const pronoun = Object.hasOwn(PRONOUNS, whole) ? PRONOUNS[whole] : undefined
  if (pronoun !== undefined) return pronoun
  if (SINGULAR.test(whole)) return 2
  if (words.includes('and')) return 1
  // "the dogs of the house": what counts stands before "of".
  const of = words.indexOf('of')
  const noun = (of > 0 ? words[of - 1] : words.at(-1)) ?? ''
  return PLURALS.has(noun) || (noun.endsWith('s') && !NOT_PLURAL.test(noun)) ? 1 : 2
}

export interface Agreement {
  readonly agrees: boolean
  readonly verb: string
  readonly tense: 'present simple' | 'past simple' | 'simple future' | 'none'
  /** What the subject takes. */
  readonly expected: string
}

/** Whether a subject and a form go together; undefined where the form is none of these verbs'. */
export function agreement(subject: string, form: string): Agreement | undefined {
  const person = personOf(subject)
  const told = (verb: Verb, tense: Agreement['tense'], expected: string) => ({
    agrees: form === expected,
    verb: verb.base,
    tense,
    expected,
  })
  for (const verb of verbs) {
    if (form === `will ${verb.base}`) return told(verb, 'simple future', form)
    if (verb.present.includes(form)) return told(verb, 'present simple', verb.present[person])
    if (verb.past.includes(form)) return told(verb, 'past simple', verb.past[person])
  }
  // A base or a participle of its own ("be", "eaten") goes with nobody.
  const verb = verbs.find(({ base, participle }) => form === base || form === participle)
  return verb === undefined
    ? undefined
    : { agrees: false, verb: verb.base, tense: 'none', expected: verb.present[person] }
}
