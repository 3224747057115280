"""The webhook behind the gateway: `python hook.py PORT`. It answers at once, after a second (/slow), or never (/hang).

It is the least HTTP server that keeps connections alive, so that it is not what is measured.
"""

import asyncio
import sys
from typing import cast

import uvloop

BODY = b'{"padding":"' + b"x" * 4082 + b'"}'
"""4 KB, the body of requests and answers."""
SLOW_SECONDS = 1.0

_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: "v1"\r\nContent-Length: %d\r\n\r\n%s' % (len(BODY), BODY)


class Connection(asyncio.Protocol):
    """One kept-alive connection."""

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        # uvloop's transport is an asyncio transport by its methods, not by its type.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end]).lower()
            size = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(self._received) < size:
                return
            del self._received[:size]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"post /slow"):
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._write)
        elif not head.startswith(b"post /hang"):
            self._write()

    def _write(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_ANSWER)


async def serve(port: int) -> None:
    """Serve until the process is killed."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
