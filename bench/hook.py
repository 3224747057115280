"""The webhook of the bench, in a process of its own: `python hook.py PORT`. It does as little as possible by itself.

It answers with as many ConfigMaps as the parent's `spec.children` says, each with the parent's `spec.text`; for an
input, with one that has the input's text, too. It remembers when it was called about which parent or input, on the
machine's monotonic clock, which the load reads too.

    POST /sync      the sync and the finalize hook; a parent is finalized once its children are gone
    POST /map       the map hook
    POST /generate  the hook of components: `spec.children` ConfigMaps in `spec.waves` waves; with `spec.gated`, each
                    wave also has a Gate, which is ready once its condition says so
    GET  /calls     [[seconds, parent or input, generation of the parent, children observed], …] since the last reset
    POST /control   {"delay": seconds, "reset": bool}: how long each answer takes; forget the calls
"""

import asyncio
import sys
import time
from typing import cast

import orjson
import uvloop

PREFIX = "bench.example.com"
GATE = "testbed.example.com/v1"
HEADERS_END = b"\r\n\r\n"


class State:
    """The calls so far and the delay, shared by all connections."""

    def __init__(self) -> None:
        """No calls yet, and no delay."""
        self.delay_seconds = 0.0
        self.calls: list[tuple[float, str, int, int]] = []


class Connection(asyncio.Protocol):
    """One kept-alive connection; the client sends one request at a time."""

    def __init__(self, state: State) -> None:
        """Share `state` with the other connections."""
        self._state = state
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        # uvloop's transport is an asyncio transport by its methods, not by its type.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once a request is complete."""
        self._received += data
        end = self._received.find(HEADERS_END)
        body_at = end + len(HEADERS_END)
        if end < 0 or len(self._received) - body_at < _content_length(head := bytes(self._received[:end])):
            return
        body, self._received = bytes(self._received[body_at:]), bytearray()
        self._request(head.split(b" ", 2)[1], body)

    def _request(self, path: bytes, body: bytes) -> None:
        state = self._state
        hooks = {b"/sync": self._sync, b"/map": self._map, b"/generate": self._generate}
        if path in hooks:
            answer = hooks[path](orjson.loads(body))
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

    def _map(self, request: dict) -> bytes:
        parent, source = request["parent"], request["input"]
        name, observed = source["metadata"]["name"], request["outputs"]["ConfigMap.v1"]
        self._state.calls.append((time.monotonic(), name, parent["metadata"]["generation"], len(observed)))
        metadata = {"name": f"{name}-out", "labels": {"of": parent["metadata"]["name"]}}
        text = f"{parent['spec']['text']} {source['data']['text']}"
        return orjson.dumps({"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}]})

    def _generate(self, request: dict) -> bytes:
        parent = request["parent"]
        name, spec = parent["metadata"]["name"], parent["spec"]
        waves = spec.get("waves", 1)
        self._state.calls.append((time.monotonic(), name, parent["metadata"]["generation"], 0))
        children = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": _placed(f"{name}-{index}", name, wave=index * waves // spec["children"]),
                "data": {"text": spec["text"]},
            }
            for index in range(spec["children"])
        ]
        gates = [
            {"apiVersion": GATE, "kind": "Gate", "metadata": _placed(f"{name}-gate-{wave}", name, wave=wave), "spec": {}}
            for wave in range(waves if spec.get("gated") else 0)
        ]
        return orjson.dumps({"children": [*children, *gates]})

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


def _placed(name: str, component: str, *, wave: int) -> dict:
    """The metadata of an object in a wave. It is ready once its condition Ready is, if it has a status."""
    hint = {f"{PREFIX}/status-hint": "has-ready-condition"} if "-gate-" in name else {}
    return {"name": name, "labels": {"component": component}, "annotations": {f"{PREFIX}/apply-order": str(wave), **hint}}


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def serve(port: int) -> None:
    """Serve until the process is killed."""
    state = State()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(state), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
