// The exact texts of the fixture. The suite checks shapes only, and would accept
// "not found".
import { isDeepStrictEqual } from 'node:util'

const text = (words) => ({ type: 'text', text: words })
const user = (content) => ({ role: 'user', content })
const isImage = ({ type, mimeType, data }) =>
  type === 'image' && mimeType === 'image/png' && data.length > 20

const TOOLS = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_embedded_resource: [
    {
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    },
  ],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    isImage,
    {
      type: 'resource',
      resource: {
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: '{"test":"data","value":123}',
      },
    },
  ],
  test_image_content: [isImage],
  test_audio_content: [
    ({ type, mimeType, data }) => type === 'audio' && mimeType === 'audio/wav' && data.length > 20,
  ],
  test_error_handling: [text('This tool intentionally returns an error for testing')],
}

const RESOURCES = {
  'test://static-text': {
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  'test://template/123/data': {
    mimeType: 'application/json',
    text: '{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
  },
}

const PROMPTS = [
  ['test_simple_prompt', {}, [user(text('This is a simple prompt for testing.'))]],
  [
    'test_prompt_with_arguments',
    { arg1: 'one', arg2: 'two' },
    [user(text("Prompt with arguments: arg1='one', arg2='two'"))],
  ],
  [
    'test_prompt_with_embedded_resource',
    { resourceUri: 'test://example' },
    [
      user({
        type: 'resource',
        resource: {
          uri: 'test://example',
          mimeType: 'text/plain',
          text: 'Embedded resource content for testing.',
        },
      }),
      user(text('Please process the embedded resource above.')),
    ],
  ],
  [
    'test_prompt_with_image',
    {},
    [
      ({ role, content }) => role === 'user' && isImage(content),
      user(text('Please analyze the image above.')),
    ],
  ],
]

function same(expected, found) {
  if (!Array.isArray(expected) || !Array.isArray(found)) return isDeepStrictEqual(found, expected)
  if (expected.length !== found.length) return false
  return expected.every((each, index) =>
    typeof each === 'function' ? each(found[index]) : isDeepStrictEqual(found[index], each),
  )
}

/** Requests everything from the fixture and returns the differences. */
export async function compareTexts(url) {
  let id = 0
  const ask = async (method, params, name) => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': method,
        ...(name === undefined ? {} : { 'Mcp-Name': name }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++id,
        method,
        params: { ...params, _meta: meta },
      }),
    })
    return (await response.json()).result
  }
  const differences = []
  const compare = (name, expected, found) => {
    if (!same(expected, found)) differences.push([name, `came ${JSON.stringify(found)}`])
  }
  for (const [name, content] of Object.entries(TOOLS))
    compare(name, content, (await ask('tools/call', { name }, name))?.content)
  for (const [uri, contents] of Object.entries(RESOURCES)) {
    compare(uri, [{ uri, ...contents }], (await ask('resources/read', { uri }, uri))?.contents)
  }
  for (const [name, given, messages] of PROMPTS)
    compare(name, messages, (await ask('prompts/get', { name, arguments: given }, name))?.messages)
  const { completion } = await ask('completion/complete', {
    ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
    argument: { name: 'arg1', value: 'test' },
  })
  compare('completion', ['test-one', 'test-two'], completion?.values)
  return differences
}
