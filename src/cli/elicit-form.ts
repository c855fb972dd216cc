import type { ElicitResult } from '../client.js'
import { isObject } from '../schema/issue.js'
import { type Field, fieldsOf, problemBy } from './elicit-fields.js'
import { indented, truncate } from './format.js'
import { type Piece, styled } from './print.js'
import type { Questions } from './questions.js'

interface FormRequest {
  server: string
  message: string
  schema: unknown
}

type Content = NonNullable<ElicitResult['content']>

/** Asks field by field, shows the answers, and sends them when the user agrees. */
export async function answerForm(
  { server, message, schema }: FormRequest,
  questions: Questions,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const fields = fieldsOf(schema)
  questions.write('\n', styled('heading', server), ` asks:\n${indented(message, '  ')}\n`)
  if (fields.length > 0)
    questions.write(
      styled(
        'detail',
        `Do not enter passwords or tokens. Enter keeps the default or skips an optional field; Ctrl-D cancels.`,
      ),
      '\n',
    )
  const values = new Map<string, unknown>()
  for (;;) {
    for (const field of fields) {
      const answer = await askField(field, values.get(field.name), questions, signal)
      if (answer === 'cancelled') return { action: 'cancel' }
      if (answer === 'skipped') values.delete(field.name)
      else values.set(field.name, answer.value)
    }
    const content = Object.fromEntries(values)
    // What concerns several fields.
    const problem = isObject(schema) ? problemBy(schema, content) : undefined
    if (problem !== undefined) {
      questions.write('\n', styled('error', `The answers do not fit together: ${problem}`), '\n')
      continue
    }
    const choice = await review(server, fields, values, questions, signal)
    if (choice === 'edit') continue
    // Every value was checked by its own schema.
    return choice === 'accept'
      ? { action: choice, content: content as Content }
      : { action: choice }
  }
}

type Answer = { value: unknown } | 'skipped' | 'cancelled'

async function askField(
  field: Field,
  current: unknown,
  questions: Questions,
  signal: AbortSignal,
): Promise<Answer> {
  const { title, facts, description, choices, required, read, show } = field
  const preset = current ?? field.preset
  questions.write('\n', styled('name', title), styled('detail', ` (${facts.join(', ')})`), '\n')
  if (description !== '') questions.write(`${indented(description, '  ')}\n`)
  for (const choice of choices) questions.write(`  ${choice}\n`)
  const prompt: Piece[] =
    preset === undefined
      ? [`${title}: `]
      : [`${title} `, styled('detail', `[${truncate(show(preset), 100)}]`), ': ']
  for (;;) {
    const typed = await questions.ask(prompt, signal)
    if (typed === undefined) return 'cancelled'
    if (typed.trim() === '' && preset !== undefined) return { value: preset }
    if (typed.trim() === '' && !required) return 'skipped'
    const outcome = typed.trim() === '' ? { problem: 'a value is required' } : read(typed)
    if (!('problem' in outcome)) return outcome
    questions.write(styled('error', `Not accepted: ${outcome.problem}`), '\n')
  }
}

type Choice = 'accept' | 'edit' | 'decline' | 'cancel'
const CHOICES: Readonly<Record<string, Choice>> = {
  y: 'accept',
  yes: 'accept',
  e: 'edit',
  edit: 'edit',
  d: 'decline',
  decline: 'decline',
  n: 'decline',
  no: 'decline',
  c: 'cancel',
  cancel: 'cancel',
}

async function review(
  server: string,
  fields: readonly Field[],
  values: ReadonlyMap<string, unknown>,
  questions: Questions,
  signal: AbortSignal,
): Promise<Choice> {
  const given = fields.filter(({ name }) => values.has(name))
  questions.write('\n')
  for (const { name, title, show } of given)
    questions.write('  ', styled('name', title), `: ${truncate(show(values.get(name)), 1000)}\n`)
  const edit = fields.length === 0 ? '' : '(e)dit, '
  const what =
    fields.length === 0
      ? 'Accept'
      : `Send ${given.length === 0 ? 'no answers' : 'this'} to ${server}`
  for (;;) {
    const typed = await questions.ask([`${what}? (y)es, ${edit}(d)ecline, (c)ancel: `], signal)
    if (typed === undefined) return 'cancel'
    const word = typed.trim().toLowerCase()
    const choice = Object.hasOwn(CHOICES, word) ? CHOICES[word] : undefined
    if (choice !== undefined && !(choice === 'edit' && fields.length === 0)) return choice
    questions.write(`Please type y, ${fields.length === 0 ? '' : 'e, '}d or c.\n`)
  }
}
