"""FastMCP. The argument "sse" serves HTTP+SSE instead of Streamable HTTP."""

import asyncio
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from serve import serve

server = FastMCP("fastmcp", version="1.0.0")


@dataclass
class Person:
    name: str


@server.tool
def echo(message: str) -> str:
    return message


@server.tool
def fail() -> str:
    raise ValueError("As planned.")


@server.tool
async def wait() -> str:
    print("waiting", file=sys.stderr, flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", file=sys.stderr, flush=True)


@server.tool
async def work(context: Context) -> str:
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "done"


@server.tool
async def ask(context: Context) -> str:
    answer = await context.elicit("Who?", Person)
    return f"{answer.action} {answer.data.name}"


@server.resource("note://1")
def note() -> str:
    return "a note"


@server.prompt
def greet(name: str) -> str:
    return f"Hello {name}"


if sys.argv[1:] == ["sse"]:
    serve(server.http_app(transport="sse"), "/sse")
else:
    serve(server.http_app())
