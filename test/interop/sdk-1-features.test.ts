import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/* The official SDK 1.x client with resources, prompts, completion, changes and logging. */

describe('SDK 1.x client', () => {
  const client = new Client({ name: 'sdk-1', version: '1.0.0' })
  const heard: string[] = []
  beforeAll(async () => {
    client.setNotificationHandler(
      ToolListChangedNotificationSchema,
      () => void heard.push('tools changed'),
    )
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void heard.push(`updated ${params.uri}`),
    )
    client.setNotificationHandler(
      LoggingMessageNotificationSchema,
      ({ params }) => void heard.push(`${params.level} ${String(params.data)}`),
    )
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [fileURLToPath(new URL('features.mjs', import.meta.url))],
        stderr: 'pipe',
      }),
    )
  })
  afterAll(() => client.close())

  it('reads resources', async () => {
    expect((await client.listResources()).resources).toEqual([
      { uri: 'config://app', name: 'app', mimeType: 'application/json' },
    ])
    expect((await client.listResourceTemplates()).resourceTemplates).toEqual([
      { uriTemplate: 'file:///{+path}', name: 'file' },
    ])
    expect((await client.readResource({ uri: 'file:///x/y' })).contents).toEqual([
      { uri: 'file:///x/y', text: 'x/y' },
    ])
    await expect(client.readResource({ uri: 'nope://x' })).rejects.toMatchObject({
      code: -32002,
      data: { uri: 'nope://x' },
    })
  })

  it('gets prompts and completions', async () => {
    expect((await client.listPrompts()).prompts).toEqual([
      { name: 'greet', arguments: [{ name: 'name', required: true }] },
    ])
    expect(
      (await client.getPrompt({ name: 'greet', arguments: { name: 'Alice' } })).messages,
    ).toEqual([{ role: 'user', content: { type: 'text', text: 'Greet Alice.' } }])
    expect(
      (
        await client.complete({
          ref: { type: 'ref/resource', uri: 'file:///{+path}' },
          argument: { name: 'path', value: '' },
        })
      ).completion,
    ).toEqual({ values: ['a', 'b'], total: 2, hasMore: false })
  })

  it('receives change notifications and log messages', async () => {
    await client.setLoggingLevel('debug')
    await client.subscribeResource({ uri: 'config://app' })
    await client.callTool({ name: 'change' })
    await expect
      .poll(() => heard)
      .toEqual(
        expect.arrayContaining(['warning changing', 'tools changed', 'updated config://app']),
      )
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['change', 'added_1'])
    await client.unsubscribeResource({ uri: 'config://app' })
  })
})
