import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { connect, memory, stdio } from '../../src/client.js'
import { httpHandler, listen } from '../../src/http.js'
import { type ServerOptions, createServer, prompt, resource, tool } from '../../src/index.js'
import { namesOf, nearest } from '../../src/schema/names.js'
import { serve, serveStdio } from '../../src/stdio.js'
import { checkServer } from '../../src/server/context.js'

/* Misspelled options and members: JavaScript ignores them, and TypeScript does not find all of them. */

const server = createServer({ name: 's', version: '1' })
const streams = { input: new PassThrough(), output: new PassThrough() }

it('does not compile a list of names that differs from the interface', () => {
  interface Options {
    host: string
    port?: number
  }
  expect(namesOf<Options>()('host port')).toBe('host port')
  // @ts-expect-error: "port" is missing
  namesOf<Options>()('host')
  // @ts-expect-error: "path" is not an option
  namesOf<Options>()('host port path')
})

describe('an unknown option', () => {
  it.each<[string, (options: object) => unknown, string, string]>([
    [
      'createServer',
      (wrong) => createServer({ name: 's', version: '1', ...wrong }),
      'instruction',
      'instructions',
    ],
    ['serve', (wrong) => serve(server, { ...streams, ...wrong }), 'maxMesage', 'maxMessage'],
    [
      'serveStdio',
      (wrong) => serveStdio(server, { exit: false, ...wrong }),
      'loglevel',
      'logLevel',
    ],
    ['httpHandler', (wrong) => httpHandler(server, wrong), 'origin', 'origins'],
    ['limits', (limits) => httpHandler(server, { limits }), 'session', 'sessions'],
    ['listen', (wrong) => listen(server, { port: 0, ...wrong }), 'prot', 'port'],
    ['connect', (wrong) => connect(memory(server), wrong), 'revison', 'revision'],
    ['stdio', (wrong) => stdio('node', [], wrong), 'environment', ''],
  ])('is rejected by %s', async (where, give, wrong, meant) => {
    const refused = async () => await give({ [wrong]: 1 })
    await expect(refused()).rejects.toThrow(TypeError)
    await expect(refused()).rejects.toThrow(
      meant === ''
        ? `${where}: unknown option "${wrong}"; the options are cwd, env, stderr, framing, maxMessage, exitTimeout`
        : `${where}: unknown option "${wrong}"; did you mean "${meant}"?`,
    )
    await expect(refused()).rejects.toMatchObject({ code: 'UNKNOWN_OPTION' })
  })
})

describe('options that are not an object', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    [
      'listen',
      () => listen(server, 8080 as never),
      'listen: the options must be an object, not 8080',
    ],
    ['serveStdio', () => serveStdio(server, null as never), 'not null'],
    ['serve', () => serve(server, '-' as never), 'serve: the options must be an object, not "-"'],
  ])('are rejected by %s', async (_, refused, message) => {
    await expect(refused()).rejects.toThrow(TypeError)
    await expect(refused()).rejects.toThrow(message)
  })
})

describe('serve', () => {
  it.each([undefined, {}, { input: streams.input }, { output: streams.output }])(
    'names what is missing in %o, and serveStdio',
    async (options) => {
      await expect(serve(server, options as never)).rejects.toThrow(
        'serve: set "input" and "output", or use serveStdio for stdin and stdout',
      )
    },
  )
})

it('compares only words of about the same length: the cost is bounded', () => {
  // Comparing these two letter by letter would take minutes.
  expect(nearest('x'.repeat(2000), ['y'.repeat(1_000_000)])).toBeUndefined()
  expect(nearest('helo', ['x'.repeat(1_000_000), 'hello'])).toBe('hello')
})

describe('a member of a definition', () => {
  const made = (options: Partial<ServerOptions>) =>
    createServer({ name: 's', version: '1', ...options })
  const run = () => 'x'

  it.each<[string, (wrong: object) => unknown, string, string]>([
    [
      'Tool "x"',
      (wrong) => made({ tools: [tool({ name: 'x', run, ...wrong })] }),
      'desciption',
      'description',
    ],
    [
      'Tool "x"',
      (wrong) => made({ tools: [tool({ name: 'x', run, ...wrong })] }),
      'timout',
      'timeout',
    ],
    [
      'Resource "a:b"',
      (wrong) => made({ resources: [resource({ uri: 'a:b', read: run, ...wrong })] }),
      'mimetype',
      'mimeType',
    ],
    [
      'Prompt "p"',
      (wrong) => made({ prompts: [prompt({ name: 'p', build: run, ...wrong })] }),
      'argument',
      'arguments',
    ],
  ])('of %s is rejected if it is probably a typo', (where, give, wrong, meant) => {
    expect(() => give({ [wrong]: 'x' })).toThrow(
      `${where}: unknown member "${wrong}"; did you mean "${meant}"?`,
    )
  })

  it('may be unknown if no known name is similar', () => {
    const own = {
      data: 1,
      tags: ['a'],
      owner: 'me',
      type: 'it',
      id: 3,
      enabled: true,
      beta: true,
      names: ['y'],
      runs: 0,
    }
    const { tools } = checkServer(made({ tools: [tool({ name: 'x', run, ...own })] }))
    expect(tools.get('x')?.definition).toMatchObject(own)
  })
})
