import { describe, expect, it } from 'vitest'
import { createServer, tool } from '../../src/index.js'
import { drive, initialize } from '../drive.js'

/*
 * Invalid input: each case gets exactly this response, and the next request is served.
 * A case is the bytes and their responses: [id, code, message], or a result.
 */
const server = createServer({
  name: 'target',
  version: '1.0.0',
  tools: [
    tool({
      name: 'echo',
      input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      run: ({ message }) => message,
    }),
    tool({ name: 'any', input: { type: 'object' }, run: (input) => JSON.stringify(input) }),
    tool({
      name: 'typed',
      input: {
        type: 'object',
        properties: {
          n: { type: 'number', minimum: 0, maximum: 10 },
          i: { type: 'integer' },
          b: { type: 'boolean' },
          e: { enum: ['red', 'green'] },
          list: { type: 'array', items: { type: 'string' }, maxItems: 2 },
          nested: {
            type: 'object',
            properties: { deep: { type: 'string', minLength: 2 } },
            required: ['deep'],
            additionalProperties: false,
          },
        },
        additionalProperties: false,
      },
      run: () => 'fine',
    }),
  ],
})

type Answer = [id: unknown, code: number, message: string] | Record<string, unknown>
type Case = [input: string | Uint8Array, ...answers: Answer[]]

const NONE = Symbol('no id')
const parse = (message: string): Answer => [null, -32700, `Parse error: ${message}`]
const refuse = (reason: string, id: unknown = null): Answer => [
  id,
  -32600,
  `Invalid Request: ${reason}`,
]
const badId = refuse('"id" must be a string or an integer')
const badParams = (id: unknown): Answer => [
  id,
  -32602,
  'Invalid params: "params" must be an object',
]
const failed = (id: unknown, text: string): Answer => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text }], isError: true },
})
const said = (id: unknown, text: string): Answer => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text }], isError: false },
})
const pong = (id: unknown): Answer => ({ jsonrpc: '2.0', id, result: {} })
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const call = (params: unknown, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
const typed = (args: unknown) => call({ name: 'typed', arguments: args })
const wrong = (problem: string) => failed(1, `Invalid arguments for typed: ${problem}`)

const notJson: Record<string, Case> = {
  'plain text': ['hello', parse('unexpected "h" at position 0')],
  'a banner': ['Server listening on stdio', parse('unexpected "S" at position 0')],
  'a truncated object': ['{"jsonrpc":"2.0","id":1', parse('unexpected end at position 23')],
  'a truncated string': [
    '{"jsonrpc":"2.0","id":1,"method":"pi',
    parse('unexpected end at position 36'),
  ],
  'a trailing comma': [
    '{"jsonrpc":"2.0","id":1,"method":"ping",}',
    parse('unexpected "}" at position 40'),
  ],
  'single quotes': ["{'jsonrpc':'2.0'}", parse('unexpected "\'" at position 1')],
  'unquoted keys': ['{jsonrpc:"2.0"}', parse('unexpected "j" at position 1')],
  'a comment': ['{"jsonrpc":"2.0"/*x*/}', parse('unexpected "/" at position 16')],
  'two objects on one line': [
    '{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    parse('unexpected "{" at position 40'),
  ],
  NaN: ['{"jsonrpc":"2.0","id":NaN,"method":"ping"}', parse('unexpected "N" at position 22')],
  Infinity: [
    '{"jsonrpc":"2.0","id":Infinity,"method":"ping"}',
    parse('unexpected "I" at position 22'),
  ],
  undefined: [
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":undefined}',
    parse('unexpected "u" at position 49'),
  ],
  'a leading zero': [
    '{"jsonrpc":"2.0","id":01,"method":"ping"}',
    parse('unexpected "1" at position 23'),
  ],
  'a plus sign': [
    '{"jsonrpc":"2.0","id":+1,"method":"ping"}',
    parse('unexpected "+" at position 22'),
  ],
  'a lone minus': [
    '{"jsonrpc":"2.0","id":-,"method":"ping"}',
    parse('unexpected "-" at position 22'),
  ],
  hexadecimal: [
    '{"jsonrpc":"2.0","id":0x10,"method":"ping"}',
    parse('unexpected "x" at position 23'),
  ],
  'a control character in a string': [
    '{"jsonrpc":"2.0","id":1,"method":"pi\u0001ng"}',
    parse('unexpected "\\u0001" at position 36'),
  ],
  'a raw tab in a string': [
    '{"jsonrpc":"2.0","id":1,"method":"pi\tng"}',
    parse('unexpected "\\t" at position 36'),
  ],
  'a bad escape': [
    '{"jsonrpc":"2.0","id":1,"method":"\\x70ing"}',
    parse('unexpected "\\\\" at position 34'),
  ],
  'a short unicode escape': [
    '{"jsonrpc":"2.0","id":1,"method":"\\u12"}',
    parse('unexpected "\\\\" at position 34'),
  ],
  'a NUL byte': [
    '{"jsonrpc":"2.0",\0"id":1,"method":"ping"}',
    parse('unexpected "\\u0000" at position 17'),
  ],
  'only a NUL byte': ['\0', parse('unexpected "\\u0000" at position 0')],
  'a byte order mark in the middle': [
    '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}',
    parse('unexpected "\ufeff" at position 0'),
  ],
  'True with a capital': [
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":True}}',
    parse('unexpected "T" at position 54'),
  ],
  'only a colon': [':', parse('unexpected ":" at position 0')],
  'only a quote': ['"', parse('unexpected end at position 1')],
  'an unclosed array': ['[1,2', parse('unexpected end at position 4')],
  'a mismatched bracket': ['{"a":[1}', parse('unexpected "}" at position 7')],
  HTTP: ['POST /mcp HTTP/1.1', parse('unexpected "P" at position 0')],
  XML: ['<?xml version="1.0"?>', parse('unexpected "<" at position 0')],
  'an ANSI escape': ['\u001b[32mready\u001b[0m', parse('unexpected "\\u001b" at position 0')],
  'an emoji': ['👋', parse('unexpected "👋" at position 0')],
  'megabytes of brackets': [
    '['.repeat(2 << 20),
    [null, -32600, 'Invalid Request: the message is nested deeper than 512 levels'],
  ],
  'a key without a value': ['{"a"}', parse('unexpected "}" at position 4')],
  'a value without a key': ['{1:2}', parse('unexpected "1" at position 1')],
  'a comma first': ['{,"a":1}', parse('unexpected "," at position 1')],
  'an unfinished exponent': ['{"a":1e}', parse('unexpected "e" at position 6')],
  'a decimal point without digits': ['{"a":1.}', parse('unexpected "." at position 6')],
}

const notUtf8: Record<string, Case> = {
  'ff fe in a string': [
    bytes('{"jsonrpc":"2.0","id":1,"method":"', [0xff, 0xfe], '"}'),
    parse('byte 34 of the message is not UTF-8'),
  ],
  'latin-1': [
    bytes('{"jsonrpc":"2.0","id":1,"method":"caf', [0xe9], '"}'),
    parse('byte 37 of the message is not UTF-8'),
  ],
  'an overlong slash': [
    bytes('{"a":"', [0xc0, 0xaf], '"}'),
    parse('byte 6 of the message is not UTF-8'),
  ],
  'an encoded surrogate': [
    bytes('{"a":"', [0xed, 0xa0, 0x80], '"}'),
    parse('byte 6 of the message is not UTF-8'),
  ],
  'a sequence of five bytes': [
    bytes('{"a":"', [0xf8, 0x88, 0x80, 0x80, 0x80], '"}'),
    parse('byte 6 of the message is not UTF-8'),
  ],
  'a lone continuation byte': [
    bytes('{"a":"', [0x80], '"}'),
    parse('byte 6 of the message is not UTF-8'),
  ],
  'UTF-16 with a byte order mark': [
    bytes([0xff, 0xfe, 0x7b, 0x00]),
    parse('byte 0 of the message is not UTF-8'),
  ],
  'a truncated character before the newline': [
    bytes('{"a":"', [0xe4, 0xb8]),
    parse('byte 6 of the message is not UTF-8'),
  ],
  gzip: [bytes([0x1f, 0x8b, 0x08, 0x00]), parse('byte 1 of the message is not UTF-8')],
}

const notRequests: Record<string, Case> = {
  'a number': ['42', refuse('a message must be a JSON object')],
  'a string': ['"ping"', refuse('a message must be a JSON object')],
  null: ['null', refuse('a message must be a JSON object')],
  true: ['true', refuse('a message must be a JSON object')],
  'an empty object': ['{}', refuse('"method" is missing')],
  'no jsonrpc': ['{"id":1,"method":"ping"}', refuse('"jsonrpc" must be "2.0"', 1)],
  'jsonrpc 1.0': ['{"jsonrpc":"1.0","id":1,"method":"ping"}', refuse('"jsonrpc" must be "2.0"', 1)],
  'jsonrpc as a number': [
    '{"jsonrpc":2.0,"id":1,"method":"ping"}',
    refuse('"jsonrpc" must be "2.0"', 1),
  ],
  'jsonrpc null': [
    '{"jsonrpc":null,"id":"a","method":"ping"}',
    refuse('"jsonrpc" must be "2.0"', 'a'),
  ],
  'no jsonrpc and no id': ['{"method":"ping"}', refuse('"jsonrpc" must be "2.0"')],
  'no method': ['{"jsonrpc":"2.0","id":1}', refuse('"method" is missing', 1)],
  'no method, string id': [
    '{"jsonrpc":"2.0","id":"x","params":{}}',
    refuse('"method" is missing', 'x'),
  ],
  'method as a number': [
    '{"jsonrpc":"2.0","id":1,"method":1}',
    refuse('"method" must be a string', 1),
  ],
  'method null': ['{"jsonrpc":"2.0","id":1,"method":null}', refuse('"method" must be a string', 1)],
  'method as an array': [
    '{"jsonrpc":"2.0","id":1,"method":["ping"]}',
    refuse('"method" must be a string', 1),
  ],
  'method as an object': [
    '{"jsonrpc":"2.0","id":1,"method":{}}',
    refuse('"method" must be a string', 1),
  ],
  'method as a number and no id': [
    '{"jsonrpc":"2.0","method":1,"params":"bar"}',
    refuse('"method" must be a string'),
  ],
  'Method with a capital': [
    '{"jsonrpc":"2.0","id":1,"Method":"ping"}',
    refuse('"method" is missing', 1),
  ],
  METHOD: ['{"jsonrpc":"2.0","id":1,"METHOD":"ping"}', refuse('"method" is missing', 1)],
  'JsonRpc with capitals': [
    '{"JsonRpc":"2.0","id":1,"method":"ping"}',
    refuse('"jsonrpc" must be "2.0"', 1),
  ],
  'ID with capitals is a notification': ['{"jsonrpc":"2.0","ID":1,"method":"ping"}'],
  'a method with a trailing space': [
    '{"jsonrpc":"2.0","id":1,"method":"ping "}',
    [1, -32601, 'Method not found: ping '],
  ],
  'an empty method': ['{"jsonrpc":"2.0","id":1,"method":""}', [1, -32601, 'Method not found: ']],
  'an unknown method': [
    '{"jsonrpc":"2.0","id":1,"method":"unknown_method"}',
    [1, -32601, 'Method not found: unknown_method'],
  ],
  'a method in capitals': [
    '{"jsonrpc":"2.0","id":1,"method":"PING"}',
    [1, -32601, 'Method not found: PING'],
  ],
  'the method __proto__': [
    '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
    [1, -32601, 'Method not found: __proto__'],
  ],
  'the method constructor': [
    '{"jsonrpc":"2.0","id":1,"method":"constructor"}',
    [1, -32601, 'Method not found: constructor'],
  ],
  'the method toString': [
    '{"jsonrpc":"2.0","id":1,"method":"toString"}',
    [1, -32601, 'Method not found: toString'],
  ],
  'a notification as a request': [
    '{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}',
    [1, -32601, 'Method not found: notifications/initialized'],
  ],
  'a capability that the server lacks': [
    '{"jsonrpc":"2.0","id":1,"method":"resources/list"}',
    [1, -32601, 'Method not found: resources/list'],
  ],
  'prompts of a server without prompts': [
    '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x"}}',
    [1, -32601, 'Method not found: prompts/get'],
  ],
  'an unknown log level': [
    '{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}',
    [
      1,
      -32602,
      'Invalid params: "level" must be one of debug, info, notice, warning, error, critical, alert, emergency, not "loud"',
    ],
  ],
  'a method of the server': [
    '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}',
    [1, -32601, 'Method not found: sampling/createMessage'],
  ],
  'a method of another revision': [
    '{"jsonrpc":"2.0","id":1,"method":"tasks/list"}',
    [1, -32601, 'Method not found: tasks/list'],
  ],
  'extra members are tolerated': [
    '{"jsonrpc":"2.0","id":1,"method":"ping","extra":1,"__proto__":{"method":"x"}}',
    pong(1),
  ],
  'an own __proto__ is data': [
    '{"__proto__":{"id":5},"jsonrpc":"2.0","id":1,"method":"ping"}',
    pong(1),
  ],
  'a request with a result as well': [
    '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
    pong(1),
  ],
  'a duplicate key: the last counts': ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', pong(2)],
  'white space everywhere': [' \t{ "jsonrpc" : "2.0" , "id" : 1 , "method" : "ping" } \r', pong(1)],
  'an escaped key': ['{"jsonrpc":"2.0","\\u0069d":1,"method":"ping"}', pong(1)],
  'a second initialize': [initialize('2025-06-18')[0] ?? '', refuse('already initialized', 'init')],
}

const ids: Record<string, Case> = {
  'a null id': ['{"jsonrpc":"2.0","id":null,"method":"ping"}', badId],
  'a fractional id': ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', badId],
  'a boolean id': ['{"jsonrpc":"2.0","id":true,"method":"ping"}', badId],
  'an object as id': ['{"jsonrpc":"2.0","id":{},"method":"ping"}', badId],
  'an array as id': ['{"jsonrpc":"2.0","id":[1],"method":"ping"}', badId],
  'an infinite id': ['{"jsonrpc":"2.0","id":1e400,"method":"ping"}', badId],
  'an id beyond safe integers': ['{"jsonrpc":"2.0","id":1e300,"method":"ping"}', badId],
  'an id over the limit': [
    JSON.stringify({ jsonrpc: '2.0', id: 'x'.repeat(2000), method: 'ping' }),
    refuse('"id" must be a string of at most 1024 characters or an integer'),
  ],
  'the id 0': ['{"jsonrpc":"2.0","id":0,"method":"ping"}', pong(0)],
  'an empty id': ['{"jsonrpc":"2.0","id":"","method":"ping"}', pong('')],
  'a negative id': ['{"jsonrpc":"2.0","id":-7,"method":"ping"}', pong(-7)],
  'an id with punctuation': ['{"jsonrpc":"2.0","id":"listen:0","method":"ping"}', pong('listen:0')],
  'the id __proto__': ['{"jsonrpc":"2.0","id":"__proto__","method":"ping"}', pong('__proto__')],
  'an id with quotes and newlines': [
    '{"jsonrpc":"2.0","id":"a\\"b\\nc\\u2028","method":"ping"}',
    pong('a"b\nc\u2028'),
  ],
  'an id with a lone surrogate': [
    '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    pong('\ud800'),
  ],
  'a null id with an unknown method': ['{"jsonrpc":"2.0","id":null,"method":"nope"}', badId],
}

const params: Record<string, Case> = {
  'string params': ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', badParams(1)],
  'array params': ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', badParams(1)],
  'null params': ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}', badParams(1)],
  'numeric params': ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}', badParams(1)],
  'boolean params': ['{"jsonrpc":"2.0","id":"a","method":"ping","params":false}', badParams('a')],
  'a notification with invalid params gets no response': [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":"x"}',
  ],
  'an unknown notification gets no response': [
    '{"jsonrpc":"2.0","method":"notifications/unknown"}',
  ],
  'a request method as a notification gets no response': [
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}',
  ],
  'a cancellation of an unknown request': [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
  ],
  'a cancellation without requestId': [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
  ],
  'a cancellation with an object as requestId': [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}',
  ],
  'a cancellation of initialize': [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}',
  ],
  'progress with an unknown token': [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
  ],
  'initialized twice': ['{"jsonrpc":"2.0","method":"notifications/initialized"}'],
}

const answersToNothing: Record<string, Case> = {
  'a response with an unknown id': ['{"jsonrpc":"2.0","id":999,"result":{}}'],
  'an error response with an unknown id': [
    '{"jsonrpc":"2.0","id":999,"error":{"code":-1,"message":"x"}}',
  ],
  'an error response with id null': [
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
  ],
  'an error response without a code': ['{"jsonrpc":"2.0","id":1,"error":{}}'],
  'an error response with a string as error': ['{"jsonrpc":"2.0","id":1,"error":"x"}'],
  'a response with result and error': [
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
  ],
  'a response without jsonrpc': ['{"id":1,"result":{}}'],
  'a response with an invalid id': ['{"jsonrpc":"2.0","id":{},"result":{}}'],
}

const batches: Record<string, Case> = {
  'an empty batch': ['[]', refuse('a batch must not be empty')],
  'a batch in a revision without batches': [
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    refuse('batches are not part of this protocol revision; send one message at a time'),
  ],
  'a batch of notifications in a revision without batches': [
    '[{"jsonrpc":"2.0","method":"x"}]',
    refuse('batches are not part of this protocol revision; send one message at a time'),
  ],
  'a batch of numbers': [
    '[1,2,3]',
    refuse('batches are not part of this protocol revision; send one message at a time'),
  ],
}

const tools: Record<string, Case> = {
  'no params': [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    [1, -32602, 'Invalid params: "name" must be the name of a tool'],
  ],
  'no name': [call({}), [1, -32602, 'Invalid params: "name" must be the name of a tool']],
  'a numeric name': [
    call({ name: 1 }),
    [1, -32602, 'Invalid params: "name" must be the name of a tool'],
  ],
  'a null name': [
    call({ name: null }),
    [1, -32602, 'Invalid params: "name" must be the name of a tool'],
  ],
  'an unknown tool': [call({ name: 'nope' }), [1, -32602, 'Unknown tool: nope']],
  'the tool __proto__': [call({ name: '__proto__' }), [1, -32602, 'Unknown tool: __proto__']],
  'the tool constructor': [call({ name: 'constructor' }), [1, -32602, 'Unknown tool: constructor']],
  'the tool hasOwnProperty': [
    call({ name: 'hasOwnProperty' }),
    [1, -32602, 'Unknown tool: hasOwnProperty'],
  ],
  'a tool in capitals': [call({ name: 'ECHO' }), [1, -32602, 'Unknown tool: ECHO']],
  'a tool with a space': [call({ name: ' echo' }), [1, -32602, 'Unknown tool:  echo']],
  'string arguments': [
    call({ name: 'echo', arguments: 'x' }),
    [1, -32602, 'Invalid params: "arguments" must be an object'],
  ],
  'array arguments': [
    call({ name: 'echo', arguments: [] }),
    [1, -32602, 'Invalid params: "arguments" must be an object'],
  ],
  'null arguments': [
    call({ name: 'echo', arguments: null }),
    [1, -32602, 'Invalid params: "arguments" must be an object'],
  ],
  'no arguments': [
    call({ name: 'echo' }),
    failed(1, 'Invalid arguments for echo: message is required'),
  ],
  'a missing argument': [
    call({ name: 'echo', arguments: {} }),
    failed(1, 'Invalid arguments for echo: message is required'),
  ],
  'an inherited argument is missing': [
    call({ name: 'echo', arguments: { ['__proto__']: { message: 'x' } } }),
    failed(1, 'Invalid arguments for echo: message is required'),
  ],
  'a number for a string': [
    call({ name: 'echo', arguments: { message: 5 } }),
    failed(1, 'Invalid arguments for echo: message must be a string, not 5'),
  ],
  'null for a string': [
    call({ name: 'echo', arguments: { message: null } }),
    failed(1, 'Invalid arguments for echo: message must be a string, not null'),
  ],
  'an object for a string': [
    call({ name: 'echo', arguments: { message: {} } }),
    failed(1, 'Invalid arguments for echo: message must be a string, not an object'),
  ],
  'a string for a number': [typed({ n: '5' }), wrong('n must be a number, not "5"')],
  'a number below the minimum': [typed({ n: -1 }), wrong('n must be at least 0, not -1')],
  'a number above the maximum': [typed({ n: 11 }), wrong('n must be at most 10, not 11')],
  'a fraction for an integer': [typed({ i: 1.5 }), wrong('i must be an integer, not 1.5')],
  'a string for a boolean': [typed({ b: 'true' }), wrong('b must be a boolean, not "true"')],
  'a value that is not in an enum': [
    typed({ e: 'blue' }),
    wrong('e must be one of "red", "green", not "blue"'),
  ],
  'a string for an array': [typed({ list: 'a' }), wrong('list must be an array, not "a"')],
  'an invalid item': [typed({ list: ['a', 2] }), wrong('list[1] must be a string, not 2')],
  'too many items': [
    typed({ list: ['a', 'b', 'c'] }),
    wrong('list must have at most 2 items, not 3'),
  ],
  'a missing nested member': [typed({ nested: {} }), wrong('nested.deep is required')],
  'a nested string below minLength': [
    typed({ nested: { deep: 'x' } }),
    wrong('nested.deep must have at least 2 characters, not 1'),
  ],
  'an unknown nested member': [
    typed({ nested: { deep: 'xx', more: 1 } }),
    wrong('nested.more is an unknown property; expected one of deep'),
  ],
  'an unknown argument': [
    typed({ N: 1 }),
    wrong('N is an unknown property; expected one of n, i, b, e, list, nested'),
  ],
  'the argument __proto__': [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"typed","arguments":{"__proto__":1}}}`,
    wrong('__proto__ is an unknown property; expected one of n, i, b, e, list, nested'),
  ],
  'several problems at once': [
    typed({ n: 'x', i: 'y' }),
    wrong('n must be a number, not "x"; i must be an integer, not "y"'),
  ],
  'a long string is truncated in the error': [
    typed({ n: 'x'.repeat(5000) }),
    wrong('n must be a number, not a string of 5000 characters'),
  ],
  '__proto__ passes through as data': [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":{"__proto__":{"polluted":true},"constructor":1}}}`,
    said(1, '{"__proto__":{"polluted":true},"constructor":1}'),
  ],
  'lone surrogates pass through': [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"\\ud800"}}}`,
    said(1, '\ud800'),
  ],
  'NUL passes through as an escape': [
    call({ name: 'echo', arguments: { message: 'a\0b' } }),
    said(1, 'a\0b'),
  ],
  'U+2028 passes through': [
    call({ name: 'echo', arguments: { message: '\u2028\u2029\u0085' } }),
    said(1, '\u2028\u2029\u0085'),
  ],
  'the deepest allowed nesting': [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":{"a":${'['.repeat(509)}${']'.repeat(509)}}}}`,
    said(1, `{"a":${'['.repeat(509)}${']'.repeat(509)}}`),
  ],
  'one level too deep keeps its id': [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":{"a":${'['.repeat(510)}${']'.repeat(510)}}}}`,
    refuse('the message is nested deeper than 512 levels', 1),
  ],
  'a deep message whose id comes last': [
    `{"method":"tools/call","params":{"a":${'['.repeat(600)}${']'.repeat(600)}},"id":"z","jsonrpc":"2.0"}`,
    refuse('the message is nested deeper than 512 levels', 'z'),
  ],
}

const limit = 5 << 20
const sizes: Record<string, Case> = {
  'a request over the limit keeps its id': [
    call({ name: 'echo', arguments: { message: 'x'.repeat(limit) } }),
    refuse(`the message has ${limit + 98} bytes; the limit is ${limit}`, 1),
  ],
  'non-JSON over the limit': [
    'x'.repeat(limit + 1),
    refuse(`the message has ${limit + 1} bytes; the limit is ${limit}`),
  ],
  'a response over the limit gets no response': [
    `{"jsonrpc":"2.0","id":4,"result":{"a":"${'x'.repeat(limit)}"}}`,
  ],
  'a notification over the limit gets a response without an id': [
    `{"jsonrpc":"2.0","method":"x","params":{"a":"${'x'.repeat(limit)}"}}`,
    refuse(`the message has ${limit + 48} bytes; the limit is ${limit}`),
  ],
}

/** A response in the form that is compared. */
function shown(answer: unknown): unknown {
  const { id = NONE, error } = answer as { id?: unknown; error?: { code: number; message: string } }
  return error === undefined ? answer : [id, error.code, error.message]
}

async function check([input, ...expected]: Case, protocolVersion: string | undefined) {
  const opening = protocolVersion === undefined ? [] : initialize(protocolVersion)
  const next = '{"jsonrpc":"2.0","id":"next","method":"ping"}'
  const stream = bytes(
    opening.map((line) => line + '\n').join(''),
    [...Buffer.from(input as string)],
    `\n${next}\n`,
  )
  const { output } = await drive(server, stream, { maxMessage: limit })
  const came = output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown)
  if (protocolVersion !== undefined)
    expect(came.shift()).toMatchObject({ id: 'init', result: { protocolVersion } })
  expect(came.pop()).toEqual({ jsonrpc: '2.0', id: 'next', result: {} })
  expect(came.map(shown)).toEqual(expected)
}

const all = { notJson, notUtf8, notRequests, ids, params, answersToNothing, batches, tools, sizes }

describe.each(Object.entries(all))('%s', (_, cases) => {
  it.each(Object.entries(cases))('%s', async (_name, example) => {
    await check(example, '2025-06-18')
  })
})

it('has at least 150 cases', () => {
  expect(
    Object.values(all).reduce((sum, cases) => sum + Object.keys(cases).length, 0),
  ).toBeGreaterThanOrEqual(150)
})

describe('before initialize', () => {
  const early = (method: string): Answer => [
    1,
    -32002,
    `Server not initialized: send "initialize" before "${method}"`,
  ]
  const cases: Record<string, Case> = {
    'a known method': ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', early('tools/list')],
    'a tool call': [call({ name: 'echo', arguments: { message: 'x' } }), early('tools/call')],
    'a capability that the server lacks': [
      '{"jsonrpc":"2.0","id":1,"method":"prompts/list"}',
      early('prompts/list'),
    ],
    'an unknown method': [
      '{"jsonrpc":"2.0","id":1,"method":"unknown_method"}',
      [1, -32601, 'Method not found: unknown_method'],
    ],
    ping: ['{"jsonrpc":"2.0","id":1,"method":"ping"}', pong(1)],
    'a batch': [
      '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
      refuse('batches are not part of this protocol revision; send one message at a time'),
    ],
    'notifications/initialized before initialize': [
      '{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      early('tools/list'),
    ],
    'initialize without params': [
      '{"jsonrpc":"2.0","id":1,"method":"initialize"}',
      [1, -32602, 'Invalid params: "protocolVersion" must be a string such as "2025-11-25"'],
    ],
    'initialize without a version': [
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}',
      [1, -32602, 'Invalid params: "protocolVersion" must be a string such as "2025-11-25"'],
    ],
    'initialize with a numeric version': [
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":20250618}}',
      [1, -32602, 'Invalid params: "protocolVersion" must be a string such as "2025-11-25"'],
    ],
    'initialize with invalid capabilities': [
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":[]}}',
      [1, -32602, 'Invalid params: "capabilities" must be an object'],
    ],
    'initialize with an invalid clientInfo': [
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":"me"}}',
      [1, -32602, 'Invalid params: "clientInfo" must be an object'],
    ],
    'initialize as a notification': [
      '{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-06-18"}}',
    ],
    text: ['not valid json', parse('unexpected "n" at position 0')],
  }
  it.each(Object.entries(cases))('%s', async (_, example) => {
    await check(example, undefined)
  })
})

describe('an error response to a request with an unreadable id', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18'])('carries id null in %s', async (revision) => {
    await check(['{bad', [null, -32700, 'Parse error: unexpected "b" at position 1']], revision)
  })
  it('carries no id in 2025-11-25', async () => {
    await check(['{bad', [NONE, -32700, 'Parse error: unexpected "b" at position 1']], '2025-11-25')
  })
})

describe('batches in 2025-03-26', () => {
  const batch = (input: string, ...expected: unknown[]) =>
    check([input, ...(expected as Answer[])], '2025-03-26')
  it('responds to requests with one batch', () =>
    batch(
      '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"nope"}]',
      [
        pong(1),
        { jsonrpc: '2.0', id: 2, error: { code: -32601, message: 'Method not found: nope' } },
      ],
    ))
  it('sends no response to a batch of notifications', () =>
    batch('[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","method":"y"}]'))
  it('rejects an empty batch', () => batch('[]', refuse('a batch must not be empty')))
  it('responds to each invalid entry', () =>
    batch('[1,{}]', [
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'Invalid Request: a message must be a JSON object' },
      },
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'Invalid Request: "method" is missing' },
      },
    ]))
  it('rejects a batch in a batch', () =>
    batch('[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]', [
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'Invalid Request: a batch must not contain a batch' },
      },
    ]))
  it('rejects more than 100 messages', () =>
    batch(
      JSON.stringify(
        Array.from({ length: 101 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })),
      ),
      refuse('a batch of 101 messages; the limit is 100'),
    ))
  it('rejects a request of a revision without batches, and serves the others', () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const error = {
      code: -32600,
      message:
        'Invalid Request: the protocol revision of this request has no batches; send it alone',
    }
    const request = (id: number, method: string, _meta: object) => ({
      jsonrpc: '2.0',
      id,
      method,
      params: { _meta },
    })
    return batch(
      JSON.stringify([
        request(1, 'server/discover', meta),
        request(2, 'subscriptions/listen', meta),
        // Incomplete, but stateless.
        request(3, 'ping', { 'io.modelcontextprotocol/clientCapabilities': {} }),
        request(4, 'ping', {}),
      ]),
      [...[1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, error })), pong(4)],
    )
  })
  it('rejects initialize in a batch', () =>
    batch(`[${initialize('2025-03-26')[0]}]`, [
      {
        jsonrpc: '2.0',
        id: 'init',
        error: { code: -32600, message: 'Invalid Request: already initialized' },
      },
    ]))
})
