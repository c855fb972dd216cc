"""Serves an ASGI application on a free port, until the end of stdin."""

import os
import socket
import sys
import threading

import uvicorn


def serve(app, path="/mcp"):
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    with open(os.environ["INTEROP_PIDS"], "a") as pids:
        pids.write(f"{os.getpid()}\n")

    def exit_at_end():
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=exit_at_end, daemon=True).start()
    port = listening.getsockname()[1]
    print(f"serving http://127.0.0.1:{port}{path}", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
