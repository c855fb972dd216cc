import { once } from 'node:events'
import { type RequestListener, createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import express4 from 'express-4'
import Fastify, { type FastifyInstance } from 'fastify'
import type { NodeHandler } from '../../src/http.js'

/* HTTP servers of other code with an MCP endpoint at /mcp, each on any free port. */

/** Serves for the length of a test. */
export async function onNode(
  listener: RequestListener,
  use: (origin: string) => Promise<void>,
): Promise<void> {
  const server = createHttpServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function onFastify(
  set: (app: FastifyInstance) => void,
  use: (origin: string) => Promise<void>,
): Promise<void> {
  const app = Fastify({ forceCloseConnections: true })
  set(app)
  try {
    await use(await app.listen({ port: 0, host: '127.0.0.1' }))
  } finally {
    await app.close()
  }
}

type Embedding = (mcp: NodeHandler, use: (origin: string) => Promise<void>) => Promise<void>

/** Where the handler finds the body as it was sent. */
export const unparsed: Readonly<Record<string, Embedding>> = {
  'node:http': (mcp, use) => onNode(mcp, use),
  'Express 5': (mcp, use) => onNode(express().all('/mcp', mcp).use(express.json()), use),
  'Express 5, mounted': (mcp, use) => onNode(express().use('/mcp', mcp), use),
  'Express 4': (mcp, use) => onNode(express4().all('/mcp', mcp), use),
  'Express 5, express.raw()': (mcp, use) =>
    onNode(
      express()
        .use(express.raw({ type: '*/*' }))
        .all('/mcp', mcp),
      use,
    ),
  'Express 5, express.text()': (mcp, use) =>
    onNode(
      express()
        .use(express.text({ type: '*/*' }))
        .all('/mcp', mcp),
      use,
    ),
  'express.json() with rawBody': (mcp, use) => {
    const keep = (request: object, _: unknown, rawBody: Buffer) =>
      Object.assign(request, { rawBody })
    return onNode(
      express()
        .use(express.json({ verify: keep }))
        .all('/mcp', mcp),
      use,
    )
  },
  Fastify: (mcp, use) =>
    onFastify((app) => {
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', (_request, _payload, done) => done(null))
      app.all('/mcp', (request, reply) => {
        reply.hijack()
        mcp(request.raw, reply.raw)
      })
    }, use),
}

/** Where other code has read the body and made a value of it. */
export const parsed: Readonly<Record<string, Embedding>> = {
  'Express 5 behind express.json()': (mcp, use) =>
    onNode(express().use(express.json()).all('/mcp', mcp), use),
  'Express 4 behind express.json()': (mcp, use) =>
    onNode(express4().use(express4.json()).all('/mcp', mcp), use),
  "Fastify's own parser": (mcp, use) =>
    onFastify((app) => {
      app.all('/mcp', (request, reply) => {
        reply.hijack()
        mcp(Object.assign(request.raw, { body: request.body }), reply.raw)
      })
    }, use),
}
