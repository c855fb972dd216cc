import type { Principal } from '../../jsonrpc/channel.js'
import { andThen } from '../../jsonrpc/hook.js'
import type { Request } from '../../jsonrpc/message.js'
import { readRequestMeta } from '../../protocol/revisions/request-meta.js'
import { callerOf } from '../caller-context.js'
import type { InternalServer } from '../context.js'
import { isVisibleTo } from './definition.js'
import type { ServedTool } from './served-tool.js'

type HeaderParameters = ServedTool['headers']

/** The parameters of a tool that a stateless request must repeat in `Mcp-Param-…` headers; none of a tool that is hidden from the caller. */
export function headerParametersFor(
  server: InternalServer,
  name: string,
  request: Request,
  principal: Principal | undefined,
): HeaderParameters | Promise<HeaderParameters> {
  const tool = server.tools.get(name)
  if (tool === undefined || tool.headers.length === 0) return []
  const meta = readRequestMeta(request)
  if (meta === undefined) return []
  return andThen(isVisibleTo(tool.definition, callerOf(meta, principal)), (visible) =>
    visible ? tool.headers : [],
  )
}
