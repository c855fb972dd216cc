import { type Verb, verbs } from './verbs.js'

/** Index of the verb form: 0 for "I", 1 for "you" and plurals, 2 for "he". */
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
/** Subjects that take a singular verb, such as "each of the dogs". */
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

/** The form that a subject takes, judged by its words alone. */
function personOf(subject: string): Person {
  const words = subject.trim().toLowerCase().split(/\s+/)
  const whole = words.join(' ')
  const pronoun = Object.hasOwn(PRONOUNS, whole) ? PRONOUNS[whole] : undefined
  if (pronoun !== undefined) return pronoun
  if (SINGULAR.test(whole)) return 2
  if (words.includes('and')) return 1
  // In "the dogs of the house" the noun before "of" decides.
  const of = words.indexOf('of')
  const noun = (of > 0 ? words[of - 1] : words.at(-1)) ?? ''
  return PLURALS.has(noun) || (noun.endsWith('s') && !NOT_PLURAL.test(noun)) ? 1 : 2
}

export interface Agreement {
  readonly agrees: boolean
  readonly verb: string
  readonly tense: 'present simple' | 'past simple' | 'simple future' | 'none'
  /** The form that the subject takes. */
  readonly expected: string
}

/** Whether a subject and a verb form agree; undefined if the form belongs to none of the verbs. */
export function agreement(subject: string, form: string): Agreement | undefined {
  const person = personOf(subject)
  const result = (verb: Verb, tense: Agreement['tense'], expected: string) => ({
    agrees: form === expected,
    verb: verb.base,
    tense,
    expected,
  })
  for (const verb of verbs) {
    if (form === `will ${verb.base}`) return result(verb, 'simple future', form)
    if (verb.present.includes(form)) return result(verb, 'present simple', verb.present[person])
    if (verb.past.includes(form)) return result(verb, 'past simple', verb.past[person])
  }
  // A bare infinitive or participle ("be", "eaten") agrees with no subject.
  const verb = verbs.find(({ base, participle }) => form === base || form === participle)
  return verb === undefined
    ? undefined
    : { agrees: false, verb: verb.base, tense: 'none', expected: verb.present[person] }
}
