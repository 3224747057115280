"""The webhook of the bench, as light as can be, in a process of its own: `python hook.py PORT`.

It answers with the parent's `spec.children` ConfigMaps that carry its `spec.text`, remembers when it was asked about whom, and takes its
time when told so. Its clock is the machine's monotonic one, which the process that drives the load reads as well.

    POST /sync      what Metaloop calls; when it finalizes, the children have to be gone first
    GET  /calls     [[seconds, parent, generation, children observed], …] since the last reset
    POST /control   {"delay": seconds, "reset": bool}
"""

import asyncio
import sys
import time
from typing import cast

import orjson
import uvloop

HEADERS_END = b"\r\n\r\n"


class State:
    """What all connections share."""

    def __init__(self) -> None:
        """Hold no call, and be quick."""
        self.delay_seconds = 0.0
        self.calls: list[tuple[float, str, int, int]] = []


class Connection(asyncio.Protocol):
    """One kept-alive connection; the client sends one request at a time."""

    def __init__(self, state: State) -> None:
        """Share `state` with the other connections."""
        self._state = state
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        # uvloop's transport is one without being a subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once a request is whole."""
        self._received += data
        head, found, body = self._received.partition(HEADERS_END)
        if not found or len(body) < _content_length(head):
            return
        self._received = b""
        self._request(head.split(b" ", 2)[1], body)

    def _request(self, path: bytes, body: bytes) -> None:
        state = self._state
        if path == b"/sync":
            answer = self._sync(orjson.loads(body))
            if state.delay_seconds:
                asyncio.get_running_loop().call_later(state.delay_seconds, self._answer, answer)
                return
        elif path == b"/control":
            command = orjson.loads(body)
            state.delay_seconds = command.get("delay", state.delay_seconds)
            if command.get("reset"):
                state.calls.clear()
            answer = b"{}"
        else:
            answer = orjson.dumps(state.calls)
        self._answer(answer)

    def _sync(self, request: dict) -> bytes:
        parent, observed = request["parent"], request["children"]["ConfigMap.v1"]
        name, spec = parent["metadata"]["name"], parent["spec"]
        self._state.calls.append((time.monotonic(), name, parent["metadata"]["generation"], len(observed)))
        children = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-{index}", "labels": {"parent": name}},
                "data": {"text": spec["text"]},
            }
            for index in range(spec["children"])
        ]
        if request["finalizing"]:
            return orjson.dumps({"status": {"children": len(observed)}, "children": [], "finalized": not observed})
        return orjson.dumps({"status": {"children": len(observed)}, "children": children})

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def serve(port: int) -> None:
    """Serve for ever."""
    state = State()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(state), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
