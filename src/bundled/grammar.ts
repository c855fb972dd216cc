import { type Server, type ServerOptions, ToolError, createServer, tool } from '../index.js'
import { READ_ONLY } from './hints.js'
import { agreement } from './agreement.js'
import { type Verb, verbs } from './verbs.js'

export type GrammarOptions = Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
>

const TENSES = [
  'infinitive',
  'present simple',
  'past simple',
  'past participle',
  'simple future',
] as const
const PERSONS = ['1st singular', '2nd singular', '3rd singular'] as const
/** Both spellings: `past simple` and `past_simple`, `3rd singular` and `3sg`. */
const tenses = [...new Set([...TENSES, ...TENSES.map((tense) => tense.replace(' ', '_'))])]
const persons = [...PERSONS, '1sg', '2sg', '3sg']

const verb = {
  type: 'string',
  enum: verbs.map(({ base }) => base),
  description: 'The verb, in its base form',
} as const

const conjugate = tool({
  name: 'conjugate',
  title: 'Conjugate a verb',
  description: 'Conjugate an English verb.',
  input: {
    type: 'object',
    properties: {
      verb,
      tense: { type: 'string', enum: tenses, description: 'The tense' },
      person: { type: 'string', enum: persons, description: 'The person' },
    },
    required: ['verb', 'tense', 'person'],
  },
  annotations: READ_ONLY,
  run: ({ verb, tense, person }) =>
    form(find(verb), tense.replace('_', ' '), Number(person[0]) - 1),
})

const lookupIrregularVerb = tool({
  name: 'lookup_irregular_verb',
  title: 'Look up an irregular verb',
  description: 'The principal parts of an English verb, and whether it is irregular.',
  input: { type: 'object', properties: { verb }, required: ['verb'] },
  output: {
    type: 'object',
    properties: {
      infinitive: { type: 'string' },
      past_simple: { type: 'string' },
      past_participle: { type: 'string' },
      irregular: { type: 'boolean' },
    },
    required: ['infinitive', 'past_simple', 'past_participle', 'irregular'],
  },
  annotations: READ_ONLY,
  run({ verb }) {
    const { base, past, participle, irregular } = find(verb)
    return {
      infinitive: base,
      past_simple: [...new Set(past)].join('/'),
      past_participle: participle,
      irregular,
    }
  },
})

const lookupSpanish = tool({
  name: 'lookup_spanish',
  title: 'Look up the Spanish',
  description:
    'The Spanish for an English form of these verbs. Forms with a person are given in the 3rd person singular.',
  input: {
    type: 'object',
    properties: { form: { type: 'string', description: 'The English form, such as "ate"' } },
    required: ['form'],
  },
  annotations: READ_ONLY,
  run: ({ form }) => spanishOf(clean(form)),
})

const checkSubjectVerbAgreement = tool({
  name: 'check_subject_verb_agreement',
  title: 'Check subject-verb agreement',
  description: 'Whether an English subject and a verb form agree, and which form would.',
  input: {
    type: 'object',
    properties: {
      subject: { type: 'string', description: 'The subject, such as "she" or "the dogs"' },
      verb_form: { type: 'string', description: 'The form, such as "eats"' },
    },
    required: ['subject', 'verb_form'],
  },
  output: {
    type: 'object',
    properties: {
      agrees: { type: 'boolean' },
      verb: { type: 'string' },
      tense: { type: 'string' },
      expected: { type: 'string', description: 'The form that agrees' },
    },
    required: ['agrees', 'verb', 'tense', 'expected'],
  },
  annotations: READ_ONLY,
  run({ subject, verb_form }) {
    if (subject.trim() === '') throw new ToolError('The subject is empty')
    const found = agreement(subject, clean(verb_form))
    if (found === undefined) throw unknownForm(verb_form)
    return found
  },
})

/** The server of `ccmcp serve grammar`: 20 verbs in 5 tenses and 3 persons. */
export function grammarServer(options: GrammarOptions = {}): Server {
  return createServer({
    invalidArguments: 'protocol',
    unexpectedErrors: 'protocol',
    ...options,
    name: 'minimcp-grammar',
    version: '0.1.0',
    tools: [conjugate, lookupIrregularVerb, lookupSpanish, checkSubjectVerbAgreement],
  })
}

function find(base: string): Verb {
  const found = verbs.find((each) => each.base === base)
  if (found === undefined) throw new ToolError(`Unknown verb ${JSON.stringify(base.slice(0, 100))}`)
  return found
}

function form({ base, present, past, participle }: Verb, tense: string, person: number): string {
  const forms: Readonly<Record<string, string | undefined>> = {
    infinitive: base,
    'present simple': present[person],
    'past simple': past[person],
    'past participle': participle,
    'simple future': `will ${base}`,
  }
  return forms[tense] ?? ''
}

/** Translates a form. If it is ambiguous, the base form comes first, then present, past and participle. */
function spanishOf(form: string): string {
  if (form === 'am') return 'soy'
  if (form === 'are') return 'eres'
  if (form === 'were') return 'fuiste'
  for (const { base, present, past, participle, spanish } of verbs) {
    if (form === base || form === `to ${base}`) return spanish.infinitive
    if (form === present[2]) return spanish.present
    if (form === past[2]) return spanish.past
    if (form === participle) return spanish.participle
    if (form === `will ${base}`) return spanish.future
  }
  throw unknownForm(form)
}

function clean(form: string): string {
  return form.trim().toLowerCase().replaceAll(/\s+/g, ' ')
}

function unknownForm(form: string): ToolError {
  return new ToolError(
    `${JSON.stringify(form.slice(0, 100))} is not a form of any of these verbs: ${verbs.map(({ base }) => base).join(', ')}`,
  )
}
