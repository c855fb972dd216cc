// Measures the CPU time of validations by schemas and values that are made at random, hostile shapes included, and
// prints the worst: in all, and relative to JSON.parse of both texts.
//
//   node scripts/validation-cost.mjs [SECONDS] [SEED] [SOURCES]     60 seconds, src by default
import { randomInt } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { buildSync } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const seconds = Number(process.argv[2] ?? 60)
const seed = Number(process.argv[3] ?? randomInt(2 ** 31))
const sources = resolve(process.argv[4] ?? join(root, 'src'))
/** Maximum characters of a schema, and of a value. */
const MAX_TEXT = 300_000
const SHOWN = 12

async function loadValidator() {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-cost-'))
  const outfile = join(folder, 'standard.mjs')
  buildSync({
    entryPoints: [join(sources, 'schema/standard.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'node20',
  })
  const { checker } = await import(pathToFileURL(outfile).href)
  rmSync(folder, { recursive: true })
  return checker
}

/** Random numbers from 0 to 1 (mulberry32). */
function randomOf(start) {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const random = randomOf(seed)
const upTo = (count) => Math.floor(random() * count)
const one = (choices) => choices[upTo(choices.length)]
/** A number of any magnitude below `most`. */
const size = (most) => Math.ceil(most ** random())
const list = (count, item) => Array.from({ length: Math.ceil(count) }, (_, index) => item(index))
const table = (count, item, name = (index) => `p${index}`) =>
  Object.fromEntries(list(count, (index) => [name(index), item(index)]))

const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object']
const NAMES = [(index) => `p${index}`, () => 'p0', (index) => `p${upTo(index + 1)}`]
const PATTERNS = [
  () => 'a',
  () => '^p',
  () => `^p${upTo(999)}`,
  () => '(a|b|ab)*c$',
  () => '^(?:p|q)+\\d*$',
  () => '(?=.*a)(?=.*b).{3,}',
  () => '(?<=a)(b+)+',
  () => `(?:a?){${size(500)}}a{${size(500)}}`,
  () => `a{${size(9000)}}`,
  () => `[a-z]{0,${size(9000)}}x`,
  () => list(size(2000), (index) => `a${index}`).join('|'),
  () => 'a'.repeat(size(100_000)),
  () => `^${'[a-z]'.repeat(size(20_000))}`,
  (depth = size(800)) => `${'(?:'.repeat(depth)}a*${')'.repeat(depth)}`,
  () => '\\p{L}'.repeat(size(5000)),
  () => '(a)\\1',
]

/** Each makes a schema with some number of parts; `part()` is a random schema. */
const SCHEMAS = {
  types: (n) => ({ type: random() < 0.1 ? list(n, () => one(TYPES)) : TYPES.slice(upTo(6)) }),
  type: () => ({ type: one(TYPES) }),
  numbers: (n) => ({ enum: list(n, (index) => index + 0.5) }),
  texts: (n) => ({ enum: list(Math.min(n, 60), (index) => `${index}${'y'.repeat(n / 30)}`) }),
  objects: (n) => ({ enum: list(n, (a) => ({ a })) }),
  arrays: (n) => ({ enum: list(50, (a) => list(n / 50, () => a)) }),
  const: (n) => ({ const: list(n, () => 1) }),
  required: (n) => ({ required: list(n, one(NAMES)) }),
  properties: (n, part) => ({ properties: table(n, part) }),
  closed: (n, part) => ({ properties: table(n, part), additionalProperties: false }),
  additional: (_, part) => ({ additionalProperties: part() }),
  patternProperties: (n, part) => ({
    patternProperties: table(size(n), part, () => one(PATTERNS)()),
  }),
  names: (n, part) => ({ propertyNames: part() }),
  pattern: () => ({ pattern: one(PATTERNS)() }),
  items: (_, part) => ({ items: part() }),
  tuple: (n, part) => ({ prefixItems: list(n, part), items: part() }),
  contains: (_, part) => ({ contains: part(), minContains: 0 }),
  unique: () => ({ uniqueItems: true }),
  allOf: (n, part) => ({ allOf: list(n, part) }),
  anyOf: (n, part) => ({ anyOf: list(n, part) }),
  oneOf: (n, part) => ({ oneOf: list(n, part) }),
  same: (n, part) => ({ [one(['allOf', 'anyOf', 'oneOf'])]: Array(n).fill(part()) }),
  not: (_, part) => ({ not: part() }),
  if: (_, part) => ({ if: part(), else: part() }),
  dependentRequired: (n) => ({
    dependentRequired: table(Math.sqrt(n), () => list(Math.sqrt(n), one(NAMES))),
  }),
  dependentSchemas: (n, part) => ({ dependentSchemas: table(n, part) }),
  lengths: () => ({ minLength: upTo(9), maxLength: size(1e6), minItems: 1, minProperties: 1 }),
  bounds: () => ({ minimum: -1, multipleOf: one([0.1, 5e-324, 1e308, 3]) }),
  unevaluatedProperties: (n, part) => ({ ...part(), unevaluatedProperties: one([false, part()]) }),
  unevaluatedItems: (n, part) => ({ ...part(), unevaluatedItems: one([false, part()]) }),
  branches: (n) => ({
    [one(['allOf', 'anyOf', 'oneOf'])]: list(n, (index) => ({
      properties: { [`p${index}`]: true },
    })),
    unevaluatedProperties: one([true, false]),
  }),
  reference: () => ({ $ref: '#/$defs/d0' }),
  references: (n) => ({ allOf: list(n, () => ({ $ref: '#/$defs/d0' })) }),
  dynamicReference: () => ({ $dynamicRef: '#n0' }),
  longReference: (n) => ({
    $dynamicRef: `#${'n'.repeat(n)}`,
    $defs: { n: { $dynamicAnchor: 'n'.repeat(n) } },
  }),
  anchors: (n) => ({ $defs: table(n, (index) => ({ $dynamicAnchor: `n${index}` })) }),
  resource: (n, part) => ({
    ...part(),
    $id: one(['r', 'r/', 'https://a.example/', 'r'.repeat(n)]),
  }),
  resources: (n) => ({
    $defs: table(n, (index) => ({
      $id: `https://a.example/${index}`,
      $dynamicAnchor: `n${upTo(9)}`,
      ...one([{}, { type: 'object', anyOf: [{ $ref: `https://a.example/${upTo(n)}` }, true] }]),
    })),
  }),
  text: (n) => ({ description: 'd'.repeat(n) }),
}

const lengths = new WeakMap()

/** About the length of a value as JSON; parts that are the same object are measured once. */
function lengthOf(value) {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object') return 6
  let length = lengths.get(value)
  if (length === undefined) {
    length = 2
    for (const name of Object.keys(value)) length += name.length + 4 + lengthOf(value[name])
    lengths.set(value, length)
  }
  return length
}

/** Applies a schema to many parts of a value. */
const WRAPPERS = ['items', 'contains', 'additionalProperties', 'unevaluatedItems', 'propertyNames']

function makeSchema(used) {
  const most = size(20_000)
  const part = (depth) => {
    if (depth === 0 || random() < 0.1) return one([true, {}, { type: one(TYPES) }, false])
    const names = list(1 + upTo(2), () => one(Object.keys(SCHEMAS)))
    for (const name of names) used.add(name)
    // Parts of one schema are mostly alike.
    const parts = list(1 + upTo(2), () => undefined)
    const inner = (index = 0) => (parts[upTo(parts.length)] ??= part(depth - 1 - (index > 9)))
    const made = Object.assign({}, ...names.map((name) => SCHEMAS[name](size(most), inner)))
    return lengthOf(made) > MAX_TEXT ? true : made
  }
  const inside = part(1 + upTo(3))
  const wrapper = one(WRAPPERS)
  used.add(wrapper)
  const schema = random() < 0.3 && inside.type === undefined ? { ...inside } : { [wrapper]: inside }
  schema.$defs = { d0: part(upTo(3)), n: { ...part(1), $dynamicAnchor: 'n0' }, ...schema.$defs }
  return schema
}

/** Each makes a value whose JSON has about `n` characters. */
const VALUES = {
  numbers: (n) => list(n / 2, () => 1),
  different: (n) => list(n / 7, (index) => index),
  texts: (n) => list(n / 4, () => 'a'),
  objects: (n) => list(n / 3, () => ({})),
  members: (n) => list(n / 14, (index) => ({ p0: index })),
  arrays: (n) => list(n / 3, () => []),
  wide: (n) => list(n / 70, () => table(9, (index) => index)),
  object: (n) => table(n / 14, (index) => index),
  text: (n) => one(['a', 'p', 'ab', '😀']).repeat(n / 2),
  long: (n) => list(9, () => 'a'.repeat(n / 10)),
  names: (n) => ({ ['p'.repeat(n)]: 1 }),
  deep: (n) => list(Math.min(n / 8, 1500), () => 0).reduce((p0) => one([{ p0 }, [p0]]), 1),
  extremes: (n) => list(n / 6, () => one([1e308, 5e-324, 1e21, 0.1])),
  mixed: (n, value) => list(9, () => value(n / 9)),
  nested: (n, value) => ({ p0: value(n / 2), p1: value(n / 2), p2: 1 }),
}

function makeValue(used, length = random() < 0.3 ? 0.9 * MAX_TEXT : size(MAX_TEXT), depth = 2) {
  const name = one(Object.keys(VALUES))
  used.add(`=${name}`)
  return VALUES[name](length, (part) => (depth === 0 ? 1 : makeValue(used, part, depth - 1)))
}

/** The CPU time of a function in milliseconds. */
function cpu(run) {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const checker = await loadValidator()
const found = []
const counts = { schemas: 0, refused: 0, values: 0, valid: 0, invalid: 0, givenUp: 0, thrown: 0 }
const end = Date.now() + seconds * 1000
while (Date.now() < end) {
  const used = new Set()
  const made = makeSchema(used)
  const text = lengthOf(made) > 2 * MAX_TEXT ? undefined : textOf(made)
  if (text !== undefined) measure(text, used)
}

/** The JSON of what was made; undefined if it is too long. */
function textOf(made) {
  const text = JSON.stringify(made)
  return text.length > MAX_TEXT ? undefined : text
}

/** Measures a schema, and the validation of some values. */
function measure(schemaText, used) {
  let schema
  let check
  const parseSchema = cpu(() => (schema = JSON.parse(schemaText)))
  const preparing = cpu(() => {
    try {
      ;({ check } = checker(schema, 'output'))
    } catch (error) {
      counts.refused++
      if (!(error instanceof TypeError)) counts.thrown++
    }
  })
  counts.schemas++
  const facts = { schema: schemaText.length, used: [...used] }
  if (check === undefined) {
    keep({ ...facts, time: preparing, parse: parseSchema, value: 0, outcome: 'refused' })
    return
  }
  for (let round = 0; round < 6; round++) {
    const shapes = new Set()
    const text = textOf(makeValue(shapes))
    if (text === undefined) continue
    let value
    let issues
    const parse = parseSchema + cpu(() => (value = JSON.parse(text)))
    let outcome
    const checking = cpu(() => {
      try {
        ;({ issues } = check(value))
      } catch {
        outcome = 'thrown'
      }
    })
    const isGivenUp = /^takes too many steps|^is nested/.test(issues?.[0].message ?? '')
    outcome ??= isGivenUp ? 'givenUp' : issues === undefined ? 'valid' : 'invalid'
    counts.values++
    counts[outcome]++
    const all = {
      time: checking + (round === 0 ? preparing : 0),
      parse,
      value: text.length,
      outcome,
    }
    keep({ ...facts, ...all, used: [...used, ...shapes] })
  }
}

function keep(entry) {
  found.push(entry)
  if (found.length > 10_000) trim()
}

function trim() {
  const byTime = found.toSorted((one, other) => other.time - one.time).slice(0, SHOWN)
  found.length = 0
  found.push(...byTime)
}

trim()
process.stdout.write(`seed ${seed}; ${JSON.stringify(counts)}\n`)
for (const { time, parse, schema, value, outcome, used } of found)
  process.stdout.write(
    `${time.toFixed(0)} ms, JSON.parse ${parse.toFixed(1)} ms (× ${(time / parse).toFixed(0)}), ` +
      `schema ${schema}, value ${value}, ${outcome}: ${used.join(' ')}\n`,
  )
if (counts.thrown > 0) {
  process.stdout.write('a validation has thrown an error\n')
  process.exitCode = 1
}
