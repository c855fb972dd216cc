// The server that the official conformance suite requires, on the public API of
// the built package. The suite defines its names, URIs and texts.
import {
  RpcError,
  ToolError,
  createServer,
  form,
  prompt,
  resource,
  roots,
  sample,
  tool,
} from '../../dist/index.js'
import { tasks } from '../../dist/tasks.js'

// TypeScript would follow an import, and does not understand where the lines of this bundle are broken.
const { skills } = await import(new URL('../../dist/skills.js', import.meta.url).href)

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const text = (type = 'string') => ({ type })
const object = (properties, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
})
const user = (words) => ({ role: 'user', content: { type: 'text', text: words } })
const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const name = form({ message: 'What is your name?', schema: object({ name: text() }) })
const capital = sample({ messages: [user('What is the capital of France?')], maxTokens: 100 })
const confirm = form({ message: 'Is that right?', schema: object({ ok: text('boolean') }) })
const said = ({ content }) => (Array.isArray(content) ? content[0]?.text : content?.text) ?? ''

const choices = ['option1', 'option2', 'option3']
const titled = [
  { const: 'value1', title: 'First Option' },
  { const: 'value2', title: 'Second Option' },
  { const: 'value3', title: 'Third Option' },
]

const plain = [
  tool({
    name: 'test_x_mcp_header',
    description: 'Returns the region, which clients send in a header',
    input: {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        level: { type: 'integer' },
      },
    },
    run: ({ region }) => `Region: ${region ?? 'none'}`,
  }),
  tool({
    name: 'test_simple_text',
    description: 'Text',
    run: () => 'This is a simple text response for testing.',
  }),
  tool({ name: 'test_image_content', description: 'An image', run: () => image }),
  tool({
    name: 'test_audio_content',
    description: 'Audio',
    run: () => ({ type: 'audio', data: WAV, mimeType: 'audio/wav' }),
  }),
  tool({
    name: 'test_embedded_resource',
    description: 'A resource',
    run: () => ({
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    }),
  }),
  tool({
    name: 'test_multiple_content_types',
    description: 'Text, an image and a resource',
    run: () => [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  tool({
    name: 'test_error_handling',
    description: 'Fails',
    run: () => {
      throw new ToolError('This tool intentionally returns an error for testing')
    },
  }),
  tool({
    name: 'json_schema_2020_12_tool',
    description: 'Has a schema with many keywords',
    input: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: text(), city: text() },
        },
      },
      properties: {
        name: text(),
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: text(),
        email: text(),
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    run: (input) => JSON.stringify(input),
  }),
]

const lively = [
  tool({
    name: 'test_tool_with_logging',
    description: 'Logs while it runs',
    async run(_, { log }) {
      log.info('Tool execution started')
      await later(50)
      log.info('Tool processing data')
      await later(50)
      log.info('Tool execution completed')
      return 'Tool with logging executed successfully'
    },
  }),
  tool({
    name: 'test_logging_tool',
    description: 'Logs, if requested',
    run(_, { log }) {
      log.info('This is a log message')
      return 'Logged'
    },
  }),
  tool({
    name: 'test_tool_with_progress',
    description: 'Reports progress',
    async run(_, call) {
      for (const done of [0, 50, 100]) {
        call.progress(done, 100, `Completed step ${done} of 100`)
        await later(50)
      }
      return 'Tool with progress executed successfully'
    },
  }),
  tool({
    name: 'test_reconnection',
    description: 'Closes its stream before it is done',
    async run(_, call) {
      call.releaseStream()
      await later(100)
      return 'Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure.'
    },
  }),
]

const asking = [
  tool({
    name: 'test_sampling',
    description: "Asks the client's model",
    input: object({ prompt: text() }),
    async run({ prompt: words }, call) {
      const { answer } = await call.ask({
        answer: sample({ messages: [user(words)], maxTokens: 100 }),
      })
      return `LLM response: ${said(answer)}`
    },
  }),
  tool({
    name: 'test_elicitation',
    description: 'Asks the user',
    input: object({ message: text() }),
    async run({ message }, call) {
      const { answer } = await call.ask({
        answer: form({ message, schema: object({ username: text(), email: text() }) }),
      })
      return `User response: ${JSON.stringify(answer)}`
    },
  }),
  tool({
    name: 'test_elicitation_sep1034_defaults',
    description: 'Asks the user, with defaults',
    async run(_, call) {
      const properties = {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      }
      const { answer } = await call.ask({
        answer: form({ message: 'Who are you?', schema: object(properties, []) }),
      })
      return `Elicitation completed: ${JSON.stringify(answer)}`
    },
  }),
  tool({
    name: 'test_elicitation_sep1330_enums',
    description: 'Asks the user, with choices',
    async run(_, call) {
      const properties = {
        untitledSingle: { type: 'string', enum: choices },
        titledSingle: { type: 'string', oneOf: titled },
        legacyEnum: {
          type: 'string',
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Option One', 'Option Two', 'Option Three'],
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: choices } },
        titledMulti: { type: 'array', items: { anyOf: titled } },
      }
      const { answer } = await call.ask({
        answer: form({ message: 'What do you choose?', schema: object(properties, []) }),
      })
      return `Elicitation completed: ${JSON.stringify(answer)}`
    },
  }),
  tool({
    name: 'test_missing_capability',
    description: "Requires the client's model",
    async run(_, call) {
      await call.ask({ answer: sample({ messages: [user('Hello')], maxTokens: 10 }) })
      return 'Sampled'
    },
  }),
  tool({
    name: 'test_streaming_elicitation',
    description: 'Asks the user',
    async run(_, call) {
      await call.ask({ confirm })
      return 'Confirmed'
    },
  }),
]

const rounds = [
  tool({
    name: 'test_input_required_result_elicitation',
    description: "Asks for the user's name",
    async run(_, call) {
      const { user_name: answer } = await call.ask({ user_name: name })
      return `Hello, ${answer.name}!`
    },
  }),
  tool({
    name: 'test_input_required_result_sampling',
    description: "Asks the client's model",
    async run(_, call) {
      const { capital_question: answer } = await call.ask({ capital_question: capital })
      return said(answer)
    },
  }),
  tool({
    name: 'test_input_required_result_list_roots',
    description: "Asks for the user's folders",
    async run(_, call) {
      const { client_roots: found } = await call.ask({ client_roots: roots() })
      return `${found.length} folders`
    },
  }),
  tool({
    name: 'test_input_required_result_request_state',
    description: 'Asks, with state held by the client',
    async run(_, call) {
      await call.ask({ confirm })
      return 'state-ok'
    },
  }),
  tool({
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks several questions together',
    async run(_, call) {
      const greeting = sample({ messages: [user('Generate a greeting')], maxTokens: 50 })
      const found = await call.ask({ user_name: name, greeting, client_roots: roots() })
      return `${found.user_name.name}: ${said(found.greeting)} (${found.client_roots.length} folders)`
    },
  }),
  tool({
    name: 'test_input_required_result_multi_round',
    description: 'Asks twice',
    async run(_, call) {
      const { step1 } = await call.ask({
        step1: form({ message: 'Step 1: What is your name?', schema: object({ name: text() }) }),
      })
      const { step2 } = await call.ask({
        step2: form({ message: 'Step 2: Your favorite color?', schema: object({ color: text() }) }),
      })
      return `${step1.name} likes ${step2.color}`
    },
  }),
  tool({
    name: 'test_input_required_result_tampered_state',
    description: 'Asks, and detects a modified state',
    async run(_, call) {
      await call.ask({ confirm })
      return 'Not tampered with'
    },
  }),
  tool({
    name: 'test_input_required_result_capabilities',
    description: 'Asks only what the client supports',
    async run(_, call) {
      const { sampling, elicitation } = call.client.capabilities
      const questions = { ...(sampling && { answer: capital }), ...(elicitation && { confirm }) }
      await call.ask(questions)
      return 'Answered'
    },
  }),
]

const resources = [
  resource({
    uri: 'test://static-text',
    name: 'Static text',
    description: 'A static text',
    mimeType: 'text/plain',
    read: () => 'This is the content of the static text resource.',
  }),
  resource({
    uri: 'test://static-binary',
    name: 'Static binary',
    description: 'Static binary data',
    mimeType: 'image/png',
    read: () => ({ blob: PNG }),
  }),
  resource({
    uri: 'test://watched-resource',
    name: 'Watched',
    description: 'Can be subscribed to',
    mimeType: 'text/plain',
    read: () => 'Watched resource content',
  }),
  resource({
    uri: 'test://template/{id}/data',
    name: 'Template',
    description: 'Data by id',
    mimeType: 'application/json',
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
]

const prompts = [
  prompt({
    name: 'test_simple_prompt',
    description: 'Text',
    build: () => 'This is a simple prompt for testing.',
  }),
  prompt({
    name: 'test_prompt_with_arguments',
    description: 'Has two arguments',
    arguments: {
      arg1: { description: 'First', complete: (typed) => [`${typed}-one`, `${typed}-two`] },
      arg2: { description: 'Second' },
    },
    build: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  prompt({
    name: 'test_prompt_with_embedded_resource',
    description: 'Shows a resource',
    arguments: { resourceUri: { description: 'Its URI' } },
    build: ({ resourceUri: uri }) => [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
      },
      user('Please process the embedded resource above.'),
    ],
  }),
  prompt({
    name: 'test_prompt_with_image',
    description: 'Shows an image',
    build: () => [{ role: 'user', content: image }, user('Please analyze the image above.')],
  }),
  prompt({
    name: 'test_input_required_result_prompt',
    description: 'Asks for its subject',
    async build(_, call) {
      const schema = object({ context: text() })
      const { user_context: answer } = await call.ask({
        user_context: form({ message: 'What context should the prompt use?', schema }),
      })
      return `Context: ${answer.context}`
    },
  }),
]

const wait = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
const confirmation = object({ confirm: { type: 'boolean' } })

/** The tools of the `tasks-*` scenarios. */
const inTasks = [
  tool({
    name: 'greet',
    description: 'Greets; never a task',
    input: object({ name: text() }),
    run: ({ name }) => `Hello, ${name}!`,
  }),
  tool({
    name: 'slow_compute',
    description: 'Takes some seconds',
    input: object({ seconds: { type: 'number' }, label: text() }, ['seconds']),
    task: { mode: 'may', after: 50, poll: 200 },
    async run({ seconds, label = '' }, call) {
      await wait(seconds * 1000, call.signal)
      return `Computed ${label}`
    },
  }),
  tool({
    name: 'failing_job',
    description: 'Fails',
    task: 'must',
    run() {
      throw new ToolError('This job always fails')
    },
  }),
  tool({
    name: 'protocol_error_job',
    description: 'Fails with a JSON-RPC error',
    task: 'must',
    run() {
      throw new RpcError(-32603, 'This job fails with a protocol error')
    },
  }),
  tool({
    name: 'confirm_delete',
    description: 'Asks for confirmation',
    input: object({ filename: text() }),
    task: 'must',
    async run({ filename }, call) {
      const { confirm } = await call.ask({
        confirm: form({ message: `Delete ${filename}?`, schema: confirmation, optional: true }),
      })
      return confirm?.confirm === true ? `Deleted ${filename}` : 'Nothing was deleted'
    },
  }),
  tool({
    name: 'multi_input',
    description: 'Asks two questions',
    task: 'must',
    async run(_, call) {
      const { name, confirm } = await call.ask({
        name: form({ message: 'Your name?', schema: object({ name: text() }) }),
        confirm: form({ message: 'Continue?', schema: confirmation }),
      })
      return `${name.name}: ${confirm.confirm}`
    },
  }),
  tool({
    name: 'test_tool_with_task',
    description: 'Asks, then becomes a task',
    task: { mode: 'must', after: 500, poll: 200 },
    async run(_, call) {
      const { user_name: user } = await call.ask({
        user_name: form({ message: 'What is your name?', schema: object({ name: text() }) }),
      })
      await wait(1500, call.signal)
      return `Hello, ${user.name}!`
    },
  }),
]

/** Creates the fixture. Change notifications are triggered by updates without a change. */
export function conformanceServer() {
  const changing = [
    tool({
      name: 'test_trigger_tool_change',
      description: 'Sends notifications/tools/list_changed',
      run: () => {
        server.tools.update('test_simple_text', {})
        return 'Told'
      },
    }),
    tool({
      name: 'test_trigger_prompt_change',
      description: 'Sends notifications/prompts/list_changed',
      run: () => {
        server.prompts.update('test_simple_prompt', {})
        return 'Told'
      },
    }),
  ]
  const server = createServer({
    name: 'ccmcp-conformance',
    version: '1.0.0',
    tools: [...plain, ...lively, ...asking, ...rounds, ...changing, ...inTasks],
    extensions: [tasks(), skills({ folder: new URL('skills', import.meta.url) })],
    resources,
    prompts,
  })
  return server
}
