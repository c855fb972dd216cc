"""The official Python SDK. The argument "sse" serves HTTP+SSE instead of Streamable HTTP."""

import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel
from serve import serve

server = MCPServer("official", version="1.0.0", log_level="ERROR")


class Person(BaseModel):
    name: str


def who() -> Elicit[Person]:
    return Elicit("Who?", Person)


@server.tool()
def echo(message: str) -> str:
    return message


@server.tool()
def fail() -> str:
    raise ToolError("As planned.")


@server.tool()
async def wait() -> str:
    print("waiting", file=sys.stderr, flush=True)
    try:
        await anyio.sleep_forever()
    finally:
        print("cancelled", file=sys.stderr, flush=True)


@server.tool()
async def work(context: Context) -> str:
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "done"


@server.tool()
def ask(person: Annotated[Person, Resolve(who)]) -> str:
    return f"accept {person.name}"


@server.tool()
async def touch(context: Context) -> str:
    await context.notify_resource_updated("note://1")
    return "touched"


@server.resource("note://1")
def note() -> str:
    return "a note"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello {name}"


if sys.argv[1:] == ["sse"]:
    serve(server.sse_app(), "/sse")
else:
    serve(server.streamable_http_app())
