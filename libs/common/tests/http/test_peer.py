"""The HTTP client against real servers on loopback, some of which misbehave."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from metaloop.common.http.answer import LARGE_BYTES
from metaloop.common.http.body import Body, OpenBody
from metaloop.common.http.connection import NoAnswer
from metaloop.common.http.peer import NoConnection, Peer, header_lines
from metaloop.devkit.certs import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


Sides: TypeAlias = tuple[ssl.SSLContext, ssl.SSLContext]
"""The server's and the client's."""


class Last(bytes):
    """Bytes after which the server ends the connection."""


CLOSES = Last()


class Server:
    """Answers each request with the next entry of its script."""

    def __init__(self, *script: bytes) -> None:
        self.script = list(script)
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = asyncio.Event()
        """Set when a connection has ended."""
        self.url = ""
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if task := asyncio.current_task():
            self._serving.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._converse(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.ended.set()

    async def finish(self) -> None:
        """Return when the clients have closed all connections."""
        await asyncio.wait_for(asyncio.gather(*self._serving), 30)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.requests.append(await self._request(reader))
            turn = self.script.pop(0)
            writer.write(turn)
            if isinstance(turn, Last):
                return

    async def _request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        return head + await reader.readexactly(int(length[1]) if length else 0)


@asynccontextmanager
async def serving(*script: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(*script)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls) as listening:
        port = listening.sockets[0].getsockname()[1]
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield server
        finally:
            await server.finish()


async def asked(*script: bytes, method: str = "GET") -> bytes:
    """The outcome of one request to a server with this script."""
    async with serving(*script) as server:
        with closing(Peer(server.url)) as peer:
            return (await peer.ask(method, "/", b"")).body


async def test_request_is_sent_with_its_headers_and_body():
    async with serving(OK) as server:
        with closing(Peer(f"{server.url}/api")) as peer:
            answer = await peer.ask("PUT", "/x?y=z", header_lines({"Accept": "any"}), b"{}")

    host = server.url.removeprefix("http://").encode()
    assert server.requests == [b"PUT /api/x?y=z HTTP/1.1\r\nHost: %s\r\nAccept: any\r\nContent-Length: 2\r\n\r\n{}" % host]
    assert (answer.status, answer.header("content-LENGTH"), answer.header("Other"), answer.body) == (200, "2", "", b"hi")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ],
    ids=["chunked", "announced", "HTTP/1.0"],
)
async def test_answers_in_every_http_framing_are_read(answer: bytes):
    assert await asked(answer) == b"hi"


async def test_answer_without_a_length_ends_with_the_connection():
    assert await asked(Last(b"HTTP/1.1 200 OK\r\n\r\nhi")) == b"hi"


async def test_answer_without_a_body_is_complete_with_its_headers():
    assert await asked(b"HTTP/1.1 204 No Content\r\n\r\n") == b""


async def test_connection_is_kept_for_the_next_request():
    async with serving(OK, OK, OK) as server:
        with closing(Peer(server.url)) as peer:
            for _ in range(3):
                await peer.ask("POST", "/", b"", b"{}")

    assert (server.connections, len(server.requests)) == (1, 3)


async def test_concurrent_requests_use_separate_connections():
    async with serving(*[OK] * 5) as server:
        with closing(Peer(server.url)) as peer:
            await asyncio.gather(*(peer.ask("GET", "/", b"") for _ in range(3)))
            await asyncio.gather(*(peer.ask("GET", "/", b"") for _ in range(2)))

    assert server.connections == 3


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"]
)
async def test_connection_that_the_server_wants_closed_is_not_reused(answer: bytes):
    async with serving(answer, OK) as server:
        with closing(Peer(server.url)) as peer:
            await peer.ask("GET", "/", b"")
            await peer.ask("GET", "/", b"")

    assert server.connections == 2


async def test_connection_that_was_idle_too_long_is_not_reused():
    async with serving(OK, OK) as server:
        with closing(Peer(server.url, idle_seconds=0)) as peer:
            await peer.ask("GET", "/", b"")
            await peer.ask("GET", "/", b"")

    assert server.connections == 2


async def test_connection_that_is_too_old_gets_no_further_request():
    """A gateway that is started later gets connections only when new ones are opened."""
    async with serving(OK, OK, OK) as server:
        with closing(Peer(server.url, longest_seconds=0)) as peer:
            await asyncio.gather(*(peer.ask("POST", "/", b"", b"{}") for _ in range(2)))
            await peer.ask("POST", "/", b"", b"{}")

    assert server.connections == 3


async def test_idempotent_request_is_sent_again_after_a_stale_connection():
    async with serving(OK, CLOSES, OK) as server:
        with closing(Peer(server.url)) as peer:
            await peer.ask("GET", "/", b"")
            answer = await peer.ask("PUT", "/", b"", b"{}")

    assert (answer.status, server.connections, len(server.requests)) == (200, 2, 3)


class NotPermitted(Exception):
    """A request is not permitted."""


class Permits:
    """Permits so many requests."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotPermitted


async def test_request_is_not_sent_without_permission():
    async with serving(OK) as server:
        with closing(Peer(server.url)) as peer, pytest.raises(NotPermitted):
            await peer.ask("GET", "/", b"", permit=Permits(0))

    assert server.requests == []


async def test_permission_is_asked_again_before_a_request_is_sent_again():
    async with serving(OK, CLOSES, OK) as server:
        with closing(Peer(server.url)) as peer:
            await peer.ask("GET", "/", b"")
            with pytest.raises(NotPermitted):
                await peer.ask("PUT", "/", b"", b"{}", permit=Permits(1))

    assert len(server.requests) == 2


async def test_other_requests_are_never_sent_again():
    async with serving(OK, CLOSES, OK) as server:
        with closing(Peer(server.url)) as peer:
            await peer.ask("POST", "/", b"", b"{}")
            with pytest.raises(NoAnswer, match="closed"):
                await peer.ask("POST", "/", b"", b"{}")

    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nConte", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", b"HTTP/1.1 100 Continue\r\n\r\n"],
    ids=["nothing", "half a header", "half a body", "only announced"],
)
async def test_request_is_not_sent_again_after_a_partial_answer(answer: bytes):
    async with serving(Last(answer), OK) as server:
        with closing(Peer(server.url)) as peer, pytest.raises(NoAnswer, match="closed before the end"):
            await peer.ask("GET", "/", b"")

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"]
)
async def test_bytes_that_are_not_http_are_reported(garbage: bytes):
    with pytest.raises(NoAnswer, match="not an answer in HTTP"):
        await asked(garbage, OK)


@pytest.mark.parametrize("more", [OK, b"HTTP/1.1 200"], ids=["an answer", "the beginning of one"])
async def test_answer_that_no_request_asked_for_is_never_used(more: bytes):
    async with serving(OK + more.replace(b"hi", b"no"), OK) as server:
        with closing(Peer(server.url)) as peer:
            first, second = await peer.ask("GET", "/", b""), await peer.ask("GET", "/", b"")

    assert (first.body, second.body, server.connections) == (b"hi", b"hi", 2)


async def test_cancelled_request_closes_its_connection():
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh", OK) as server:
        with closing(Peer(server.url)) as peer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await peer.ask("GET", "/", b"")
            await asyncio.wait_for(server.ended.wait(), 30)
            answer = await peer.ask("GET", "/", b"")

    assert (answer.body, server.connections) == (b"hi", 2)


async def test_close_ends_idle_connections_now_and_others_after_their_answers():
    async with serving(OK, OK) as server:
        peer = Peer(server.url)
        asking = asyncio.create_task(peer.ask("GET", "/", b""))
        await asyncio.sleep(0)
        peer.close()
        assert (await asking).body == b"hi"
        await asyncio.wait_for(server.ended.wait(), 30)


def pieces(count: int) -> Iterator[bytes]:
    """So many pieces of 64 KiB."""
    return (b"x" * 2**16 for _ in range(count))


@pytest.mark.parametrize("body", [b"x" * 30_000_000, pieces(500)], ids=["one piece", "pieces"])
async def test_connection_is_not_reused_if_the_answer_preceded_the_requests_end(body: Body):
    answered, ended = 0, asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        answered += 1
        await ended.wait()  # the rest is never read, and the connection never closed
        writer.transport.abort()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            async with asyncio.timeout(30):
                answers = [await peer.ask("POST", "/", b"", body), await peer.ask("GET", "/", b"")]
        ended.set()

    assert [answer.body for answer in answers] == [b"hi", b"hi"]
    assert answered == 2


async def test_large_body_is_sent_completely():
    body = b"x" * 8_000_000
    async with serving(OK) as server:
        with closing(Peer(server.url)) as peer:
            await peer.ask("PUT", "/", b"", body)

    assert server.requests[0].endswith(b"\r\n\r\n" + body)


async def receive_chunked(reader: asyncio.StreamReader) -> bytes:
    """The body of a request in chunks."""
    assert b"\r\nTransfer-Encoding: chunked\r\n" in await reader.readuntil(b"\r\n\r\n")
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


@pytest.mark.parametrize("count", [0, 1, 3, 10_000])
async def test_body_in_pieces_is_sent_completely_and_the_connection_kept(count: int):
    received: list[bytes] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            received.append(await receive_chunked(reader))
            writer.write(OK)
        writer.close()

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            async with asyncio.timeout(30):
                for _ in range(2):
                    await peer.ask("POST", "/", b"", [b"%d," % number for number in range(count)])

    assert received == [b"".join(b"%d," % number for number in range(count))] * 2


async def test_no_more_pieces_are_made_than_the_server_takes():
    made, stopped, ended = 0, asyncio.Event(), asyncio.Event()

    def counted() -> Iterator[bytes]:
        nonlocal made
        for piece in pieces(5_000):
            made += 1
            yield piece

    async def stop_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        stopped.set()
        await ended.wait()
        writer.transport.abort()

    async with await asyncio.start_server(stop_reading, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            asking = asyncio.create_task(peer.ask("POST", "/", b"", counted()))
            await stopped.wait()
            while True:  # until a moment passes without a new piece
                before = made
                await asyncio.sleep(0.1)
                if made == before:
                    break
            ended.set()
            with pytest.raises(NoAnswer):
                await asking

    assert 0 < made < 1_000


@pytest.mark.parametrize("size", [LARGE_BYTES, LARGE_BYTES + 1])
async def test_answer_of_any_size_is_whole(size: int):
    body = b"x" * size
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (size, body), OK) as server:
        with closing(Peer(server.url)) as peer:
            answers = [await peer.ask("GET", "/", b""), await peer.ask("GET", "/", b"")]

    assert [(answer.body, answer.parts) for answer in answers] == [(body, ()), (b"hi", ())]
    assert server.connections == 1


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\0b"])
def test_header_cannot_smuggle_another(value: str):
    with pytest.raises(ValueError, match="X-Name"):
        header_lines({"X-Name": value})


@pytest.mark.parametrize("target", ["/x HTTP/1.1\r\nX: y", "x", "/a b", "/ä", ""])
async def test_target_cannot_smuggle_a_request(target: str):
    with pytest.raises(ValueError, match="not a request path"):
        await Peer("http://127.0.0.1:1").ask("GET", target, b"")


async def test_unreachable_server_is_named():
    with pytest.raises(NoConnection, match=r"127\.0\.0\.1:1: "):
        await Peer("http://127.0.0.1:1").ask("GET", "/", b"")


async def test_name_that_does_not_resolve_is_named():
    with pytest.raises(NoConnection, match=r"nowhere\.invalid"):
        await Peer("http://nowhere.invalid").ask("GET", "/", b"")


async def test_next_address_is_tried_when_the_first_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    """Two machines share a name and one is off, or a name has an IPv6 address on a network without IPv6."""
    async with serving(OK) as server:
        port = int(server.url.rpartition(":")[2])

        async def found(*_: object, **__: object) -> list[tuple[object, ...]]:
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        with silent_listener("127.0.0.2", port), closing(Peer(f"http://two.invalid:{port}", connect_seconds=2)) as peer:
            assert (await peer.ask("GET", "/", b"")).body == b"hi"


@contextmanager
def silent_listener(host: str, port: int) -> Iterator[None]:
    """A listener that accepts no more connections: its backlog is full, and the kernel drops new ones."""
    with socket.socket() as listening, ExitStack() as filling:
        listening.bind((host, port))
        listening.listen(0)
        for _ in range(4):
            waiting = filling.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield


async def test_tls_handshake_has_a_timeout():
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        over.set()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        peer = Peer(f"https://127.0.0.1:{port}", connect_seconds=0.1)
        with pytest.raises(NoConnection, match=r"within 0\.1 s"):
            await peer.ask("GET", "/", b"")
        await asyncio.wait_for(over.wait(), 30)


@pytest.fixture
def tls(tmp_path: Path) -> Callable[[str], Sides]:
    """The server's and the client's side of a server that is known by this name."""

    def contexts(host: str) -> Sides:
        authority = Authority("tests")
        authority.serving("server", hosts=[host]).write(tmp_path / "server")
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
        return server, ssl.create_default_context(cadata=authority.certificate_pem.decode())

    return contexts


async def test_tls_verifies_the_servers_name(tls: Callable[[str], Sides]):
    theirs, ours = tls("cluster.example")
    async with serving(OK, OK, tls=theirs) as server:
        with closing(Peer(server.url, tls=ours, server_hostname="cluster.example")) as peer:
            for _ in range(2):
                assert (await peer.ask("GET", "/", b"")).body == b"hi"
        with pytest.raises(NoConnection, match="certificate"):
            await Peer(server.url, tls=ours).ask("GET", "/", b"")
        with pytest.raises(NoConnection, match="certificate"):
            await Peer(server.url).ask("GET", "/", b"")

    assert len(server.requests) == 2


# -- bodies that go on -------------------------------------------------------------------------------------------------


class Spoken:
    """What a test says behind the beginning of a body."""

    def __init__(self, beginning: Body = b"begin;") -> None:
        self.body = OpenBody(beginning, self._follow)
        self.sends: asyncio.Future[Callable[[bytes], None]] = asyncio.get_running_loop().create_future()

    @contextmanager
    def _follow(self, send: Callable[[bytes], None]) -> Iterator[None]:
        self.sends.set_result(send)
        yield


@pytest.mark.parametrize("beginning", [b"begin;", [b"be", b"gin;"]])
async def test_open_body_goes_on_in_chunks_and_ends_with_the_next_request(beginning: Body):
    requests, answers = list[bytes](), list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for is_next in (False, True):
            if is_next:
                requests.append(await reader.readexactly(len(b"0\r\n\r\n")))
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            requests.append(await reader.readuntil(b"more;\r\n"))
            writer.write(OK)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            for _ in range(2):  # on the same connection
                spoken = Spoken(beginning)
                asking = asyncio.ensure_future(peer.ask("POST", "/", b"", spoken.body))
                (await spoken.sends)(b"more;")
                answers.append((await asking).body)

    assert answers == [b"hi", b"hi"]
    assert b"Transfer-Encoding: chunked" in requests[0]
    assert requests[1:3] == [b"6\r\nbegin;\r\n5\r\nmore;\r\n", b"0\r\n\r\n"]
    assert requests[3:5] == requests[:2]


async def test_nothing_follows_the_answer_of_an_open_body():
    spoken = Spoken()
    rest: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"begin;\r\n")
        writer.write(OK)
        rest.set_result(await reader.read())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            await peer.ask("POST", "/", b"", spoken.body)
            spoken.sends.result()(b"too late")

        assert await rest == b""


async def test_what_is_said_at_once_goes_with_the_beginning_of_an_open_body():
    @contextmanager
    def at_once(send: Callable[[bytes], None]) -> Iterator[None]:
        send(b"more;")
        yield

    writes: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writes.set_result(await reader.read(65536))
        writer.write(OK)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        with closing(Peer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")) as peer:
            await peer.ask("POST", "/", b"", OpenBody(b"begin;", at_once))

    assert (await writes).endswith(b"\r\n\r\n6\r\nbegin;\r\n5\r\nmore;\r\n")
