import { describe, expect, it } from 'vitest'
import { grammarServer } from '../../src/bundled/grammar.js'
import { connect, memory } from '../../src/client.js'
import { answers, call, initialize } from '../drive.js'

/*
 * Infinitive; present, past, past participle and future in the 1st, 2nd and
 * 3rd person singular, as printed in the course.
 */
const FORMS = `
work   | work, work, work       | work, work, works       | worked, worked, worked       | worked, worked, worked       | will work, will work, will work
play   | play, play, play       | play, play, plays       | played, played, played       | played, played, played       | will play, will play, will play
walk   | walk, walk, walk       | walk, walk, walks       | walked, walked, walked       | walked, walked, walked       | will walk, will walk, will walk
talk   | talk, talk, talk       | talk, talk, talks       | talked, talked, talked       | talked, talked, talked       | will talk, will talk, will talk
listen | listen, listen, listen | listen, listen, listens | listened, listened, listened | listened, listened, listened | will listen, will listen, will listen
watch  | watch, watch, watch    | watch, watch, watches   | watched, watched, watched    | watched, watched, watched    | will watch, will watch, will watch
study  | study, study, study    | study, study, studies   | studied, studied, studied    | studied, studied, studied    | will study, will study, will study
finish | finish, finish, finish | finish, finish, finishes | finished, finished, finished | finished, finished, finished | will finish, will finish, will finish
start  | start, start, start    | start, start, starts    | started, started, started    | started, started, started    | will start, will start, will start
look   | look, look, look       | look, look, looks       | looked, looked, looked       | looked, looked, looked       | will look, will look, will look
want   | want, want, want       | want, want, wants       | wanted, wanted, wanted       | wanted, wanted, wanted       | will want, will want, will want
like   | like, like, like       | like, like, likes       | liked, liked, liked          | liked, liked, liked          | will like, will like, will like
be     | be, be, be             | am, are, is             | was, were, was               | been, been, been             | will be, will be, will be
have   | have, have, have       | have, have, has         | had, had, had                | had, had, had                | will have, will have, will have
do     | do, do, do             | do, do, does            | did, did, did                | done, done, done             | will do, will do, will do
go     | go, go, go             | go, go, goes            | went, went, went             | gone, gone, gone             | will go, will go, will go
come   | come, come, come       | come, come, comes       | came, came, came             | come, come, come             | will come, will come, will come
see    | see, see, see          | see, see, sees          | saw, saw, saw                | seen, seen, seen             | will see, will see, will see
eat    | eat, eat, eat          | eat, eat, eats          | ate, ate, ate                | eaten, eaten, eaten          | will eat, will eat, will eat
write  | write, write, write    | write, write, writes    | wrote, wrote, wrote          | written, written, written    | will write, will write, will write
`
const TENSES = ['infinitive', 'present simple', 'past simple', 'past participle', 'simple future']
const PERSONS = ['1st singular', '2nd singular', '3rd singular']
const SHORT = ['1sg', '2sg', '3sg']

const table = FORMS.trim()
  .split('\n')
  .flatMap((row) => {
    const [verb = '', ...tenses] = row.split('|').map((cell) => cell.trim())
    return tenses.flatMap((forms, tense) =>
      forms.split(', ').map((form, person) => ({ verb, tense, person, form })),
    )
  })

/** Calls one tool many times over one connection. */
async function all(
  calls: readonly { name: string; input: object }[],
  revision = '2025-11-25',
): Promise<unknown[]> {
  const lines = calls.map(({ name, input }, index) => call(name, input, index))
  const [, ...rest] = await answers(grammarServer(), [...initialize(revision), ...lines])
  return rest
}
const texts = (found: unknown[]) =>
  found.map(
    (answer) => (answer as { result: { content: { text: string }[] } }).result.content[0]?.text,
  )

describe('conjugate', () => {
  it('has a table of 300 forms', () => {
    expect(table).toHaveLength(300)
    expect(new Set(table.map(({ verb }) => verb)).size).toBe(20)
  })
  it('conjugates all 300 forms', async () => {
    const input = table.map(({ verb, tense, person }) => ({
      name: 'conjugate',
      input: { verb, tense: TENSES[tense], person: PERSONS[person] },
    }))
    expect(texts(await all(input))).toEqual(table.map(({ form }) => form))
  })
  it('accepts the other spelling of tenses and persons', async () => {
    const input = table.map(({ verb, tense, person }) => ({
      name: 'conjugate',
      input: { verb, tense: TENSES[tense]?.replace(' ', '_'), person: SHORT[person] },
    }))
    expect(texts(await all(input))).toEqual(table.map(({ form }) => form))
  })
  it('rejects unknown verbs, tenses and persons with -32602', async () => {
    const good = { verb: 'eat', tense: 'past simple', person: '3sg' }
    const bad = [
      { ...good, verb: 'fly' },
      { ...good, tense: 'pluperfect' },
      { ...good, person: '1pl' },
      { verb: 'eat' },
    ]
    const found = await all(bad.map((input) => ({ name: 'conjugate', input })))
    for (const [index, word] of ['verb', 'tense', 'person', 'tense'].entries())
      expect(found[index]).toMatchObject({
        error: { code: -32602, message: expect.stringContaining(word) as unknown },
      })
  })
  it('returns an error result with invalidArguments: result', async () => {
    const [, found] = await answers(grammarServer({ invalidArguments: 'result' }), [
      ...initialize('2025-11-25'),
      call('conjugate', { verb: 'fly' }),
    ])
    expect(found).toMatchObject({ result: { isError: true } })
  })
})

describe('lookup_irregular_verb', () => {
  const PARTS: Readonly<Record<string, readonly [string, string, boolean]>> = {
    be: ['was/were', 'been', true],
    have: ['had', 'had', true],
    do: ['did', 'done', true],
    go: ['went', 'gone', true],
    come: ['came', 'come', true],
    see: ['saw', 'seen', true],
    eat: ['ate', 'eaten', true],
    write: ['wrote', 'written', true],
    work: ['worked', 'worked', false],
    study: ['studied', 'studied', false],
  }
  it('returns text and structured content', async () => {
    const names = Object.keys(PARTS)
    const found = await all(
      names.map((verb) => ({ name: 'lookup_irregular_verb', input: { verb } })),
    )
    for (const [index, infinitive] of names.entries()) {
      const [past_simple, past_participle, irregular] = PARTS[infinitive] ?? []
      const value = { infinitive, past_simple, past_participle, irregular }
      expect(found[index]).toMatchObject({
        result: {
          content: [{ text: JSON.stringify(value) }],
          structuredContent: value,
          isError: false,
        },
      })
    }
  })
  it('returns text only in revisions without structured content', async () => {
    const [found] = await all(
      [{ name: 'lookup_irregular_verb', input: { verb: 'eat' } }],
      '2024-11-05',
    )
    expect(found).toEqual({
      jsonrpc: '2.0',
      id: 0,
      result: {
        content: [
          {
            type: 'text',
            text: '{"infinitive":"eat","past_simple":"ate","past_participle":"eaten","irregular":true}',
          },
        ],
        isError: false,
      },
    })
  })
})

describe('lookup_spanish', () => {
  const SPANISH: Readonly<Record<string, string>> = {
    ate: 'comió',
    eat: 'comer',
    'to eat': 'comer',
    eats: 'come',
    eaten: 'comido',
    'will eat': 'comerá',
    ' ATE ': 'comió',
    wrote: 'escribió',
    written: 'escrito',
    went: 'fue',
    had: 'tuvo',
    saw: 'vio',
    did: 'hizo',
    done: 'hecho',
    came: 'vino',
    come: 'venir',
    am: 'soy',
    are: 'eres',
    is: 'es',
    was: 'fue',
    were: 'fuiste',
    been: 'sido',
    be: 'ser',
    studied: 'estudió',
    plays: 'juega',
    starts: 'empieza',
    'will want': 'querrá',
  }
  it('translates forms', async () => {
    const forms = Object.keys(SPANISH)
    expect(
      texts(await all(forms.map((form) => ({ name: 'lookup_spanish', input: { form } })))),
    ).toEqual(Object.values(SPANISH))
  })
  it('finds every form of the table', async () => {
    const forms = [...new Set(table.map(({ form }) => form))]
    const found = await all(forms.map((form) => ({ name: 'lookup_spanish', input: { form } })))
    for (const answer of found)
      expect(answer).toMatchObject({
        result: {
          isError: false,
          content: [{ text: expect.stringMatching(/^[a-záéíóúñ]+$/) as unknown }],
        },
      })
  })
  it('lists the known verbs for an unknown form', async () => {
    const [found] = await all([{ name: 'lookup_spanish', input: { form: 'flew' } }])
    expect(found).toMatchObject({
      result: {
        isError: true,
        content: [
          {
            text: expect.stringContaining(
              '"flew" is not a form of any of these verbs: work, play',
            ) as unknown,
          },
        ],
      },
    })
  })
})

describe('check_subject_verb_agreement', () => {
  const CASES: readonly [subject: string, form: string, agrees: boolean, expected: string][] = [
    ['I', 'eat', true, 'eat'],
    ['I', 'eats', false, 'eat'],
    ['she', 'eats', true, 'eats'],
    ['He', 'eat', false, 'eats'],
    ['it', 'ate', true, 'ate'],
    ['I', 'am', true, 'am'],
    ['you', 'is', false, 'are'],
    ['they', 'was', false, 'were'],
    ['we', 'were', true, 'were'],
    ['the dog', 'plays', true, 'plays'],
    ['the dogs', 'plays', false, 'play'],
    ['Ann and Bob', 'work', true, 'work'],
    ['every student', 'studies', true, 'studies'],
    ['everyone', 'have', false, 'has'],
    ['the children', 'goes', false, 'go'],
    ['the news', 'is', true, 'is'],
    ['the bus', 'comes', true, 'comes'],
    ['the owner of the dogs', 'walks', true, 'walks'],
    ['they', 'will go', true, 'will go'],
    ['she', 'eaten', false, 'eats'],
    ['she', 'be', false, 'is'],
  ]
  it.each(CASES)('%s %s: %s', async (subject, verb_form, agrees, expected) => {
    const [found] = await all([
      { name: 'check_subject_verb_agreement', input: { subject, verb_form } },
    ])
    expect(found).toMatchObject({ result: { structuredContent: { agrees, expected } } })
  })
  it('rejects an unknown form or an empty subject', async () => {
    const found = await all([
      { name: 'check_subject_verb_agreement', input: { subject: 'she', verb_form: 'flies' } },
      { name: 'check_subject_verb_agreement', input: { subject: ' ', verb_form: 'eats' } },
    ])
    expect(found).toMatchObject([{ result: { isError: true } }, { result: { isError: true } }])
  })
})

it('is minimcp-grammar 0.1.0, with four tools', async () => {
  const client = await connect(memory(grammarServer()), { revision: '2024-11-05' })
  expect(client.server).toEqual({ name: 'minimcp-grammar', version: '0.1.0' })
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  expect(names).toEqual([
    'conjugate',
    'lookup_irregular_verb',
    'lookup_spanish',
    'check_subject_verb_agreement',
  ])
  await client.close()
})
