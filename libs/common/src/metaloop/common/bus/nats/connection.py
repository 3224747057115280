"""A connection to NATS that comes back by itself, and requests that always end.

The client library's defaults don't suit a service that runs for months:

- It gives up reconnecting after two minutes. We never do; a client that closed for good ends the service.
- Its connection can be dead while it says "connected". We send an echo through the server every few seconds, and drop
  the connection when two in a row are missing.
- Its `flush` can kill its read loop when it times out, and its `request` costs half as much again as ours. We use
  neither.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from nats.aio.client import Client
from nats.aio.msg import Msg as Message
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from metaloop.common.bus.nats.login import NO_FILES, Login, login_in
from metaloop.common.bus.nats.subjects import subject_token
from metaloop.common.errors import NobodyThere, Unavailable
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within

log = get_logger()

_RECONNECT_WAIT_SECONDS = 0.2
_PING_INTERVAL_SECONDS = 5
_ECHO_INTERVAL_SECONDS = 3.0
_ECHO_TIMEOUT_SECONDS = 2.0
_PENDING_MESSAGES = 1_000_000
_PENDING_BYTES = 512 * 1024 * 1024
_OUTBOX_BYTES = 16 * 1024 * 1024
_SOON_SECONDS = 0.001
_CHECK_SUBJECT = "$JS.API.INFO"
_STATUS = "Status"
NO_RESPONDERS = "503"

Handler: TypeAlias = Callable[[Message], Awaitable[None]]

__all__ = ["NO_RESPONDERS", "Connection", "Handler", "Message", "connected", "status_of"]


def status_of(message: Message) -> str:
    """The status code that the server put in place of a message, or empty for a message."""
    return message.headers.get(_STATUS, "") if message.headers else ""


@dataclass(frozen=True, slots=True)
class _Collected:
    subject: str
    body: bytes
    reply: str


class Connection:
    """One connection to NATS for the whole process; made by `connected`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._inbox = ""
        """Where answers to requests go, once the connection has begun."""
        self._tokens = 0
        self._answers: dict[str, asyncio.Future[Message]] = {}
        self._collected: list[_Collected] = []
        """Messages that go with the next one, or when the timer ends."""
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        """What the timer started last, referenced so that it isn't collected."""
        self._is_closed = asyncio.Event()
        self._last_error = ""
        """The connection error that was logged last."""
        self._reconnect_listeners: list[Callable[[], None]] = []

    @property
    def is_connected(self) -> bool:
        """Whether the connection is up, as far as anybody knows."""
        return self._client.is_connected

    @property
    def max_payload(self) -> int:
        """The largest message that the server takes, in bytes."""
        return self._client.max_payload

    def new_inbox(self) -> str:
        """A subject that nobody else uses."""
        return self._client.new_inbox()

    @contextmanager
    def on_reconnect(self, listener: Callable[[], None]) -> Iterator[None]:
        """Have `listener` called after each reconnection, for the length of the block.

        It must return at once: nothing is read meanwhile.
        """
        self._reconnect_listeners.append(listener)
        try:
            yield
        finally:
            self._reconnect_listeners.remove(listener)

    async def publish(self, subject: str, body: bytes, *, reply: str = "") -> None:
        """Send a message, or keep it until the connection is back.

        Raises Unavailable where too much waits to be sent.
        """
        if self._collected:
            await self.send_collected()
        try:
            await self._client.publish(subject, body, reply)
        except NatsError as error:
            raise Unavailable(f"publish to {subject}: {error!r}") from error

    def publish_soon(self, subject: str, body: bytes, *, reply: str = "") -> None:
        """Send a message with the next one, in order, and after a millisecond at the latest.

        A write to the socket costs more CPU than a message, here and at the server. Raises Unavailable where too much
        waits to be sent.
        """
        if not self.is_connected and self._client.pending_data_size + len(body) > _OUTBOX_BYTES:
            raise Unavailable(f"publish to {subject}: too much waits to be sent")
        self._collected.append(_Collected(subject, body, reply))
        if self._timer is None:
            self._timer = self._loop.call_later(_SOON_SECONDS, self._send_in_background)

    async def send_collected(self) -> None:
        """Send what waits for the next message."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        messages, self._collected = self._collected, []
        try:
            for each in messages:
                await self._client.publish(each.subject, each.body, each.reply)
        except NatsError as error:
            log.warning("bus.messages_dropped", **{fields.ERROR: repr(error)})

    def _send_in_background(self) -> None:
        self._timer = None
        self._sending = self._loop.create_task(self.send_collected(), name="send collected messages")

    async def subscribe(self, subject: str, handler: Handler) -> Subscription:
        """Have `handler` called with each message to `subject`, one after another, also after reconnections.

        Raises Unavailable.

        What a handler raises is logged, and the next message is handled.
        """
        subscribe = partial(self._client.subscribe, pending_msgs_limit=_PENDING_MESSAGES, pending_bytes_limit=_PENDING_BYTES)
        try:
            return await subscribe(subject, cb=handler)
        except NatsError as error:
            raise Unavailable(f"subscribe to {subject}: {error!r}") from error

    @asynccontextmanager
    async def listening(self, subject: str, handler: Handler) -> AsyncIterator[None]:
        """`subscribe` for the length of the block."""
        subscription = await self.subscribe(subject, handler)
        try:
            yield
        finally:
            with suppress(NatsError):  # a connection that is down or closed has forgotten it already
                await subscription.unsubscribe()

    async def request(self, subject: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """The answer to a request.

        Raises NobodyThere where nobody listens, Unavailable where no answer came in time or the connection is down.
        """
        if not self.is_connected:
            raise Unavailable(f"request to {subject}: not connected to NATS")
        token = self._next_token()
        answer: asyncio.Future[Message] = self._loop.create_future()
        self._answers[token] = answer
        timer = self._loop.call_later(timeout_seconds, _give_up, answer, subject)
        try:
            await self.publish(subject, body, reply=f"{self._inbox}.{token}")
            message = await answer
        finally:
            timer.cancel()
            del self._answers[token]
        if status_of(message) == NO_RESPONDERS:
            raise NobodyThere(f"request to {subject}: nobody is there")
        return message.data

    async def check(self, *, timeout_seconds: float = 2.0) -> None:
        """Return where NATS and its JetStream answer now. Raises Unavailable where they don't."""
        await self.request(_CHECK_SUBJECT, b"", timeout_seconds=timeout_seconds)

    async def start(self) -> None:
        """Begin to listen for answers to requests."""
        self._inbox = self.new_inbox()
        await self.subscribe(f"{self._inbox}.*", self._take_answer)

    async def watch_over(self) -> None:
        """Until cancelled: drop the connection when it carries no echo any more.

        Raises Unavailable when it closed for good.
        """
        echo = self.new_inbox()
        heard = asyncio.Event()

        async def hear(_: Message) -> None:
            heard.set()

        await self.subscribe(echo, hear)
        missed = 0
        while not await self._closes_within(_ECHO_INTERVAL_SECONDS):
            heard.clear()
            missed = 0 if await self._echoes(echo, heard) else missed + 1
            if missed >= 2 and self.is_connected:
                log.warning("bus.silent_connection_dropped")
                await self._client.force_reconnect()
                missed = 0
        raise Unavailable(f"NATS closed the connection for good: {self._client.last_error!r}")

    async def reconnected(self) -> None:
        """Tell all listeners. The client library calls it, and waits for it."""
        log.info("bus.reconnected")
        self._last_error = ""
        for listener in self._reconnect_listeners:
            listener()

    async def erred(self, error: Exception) -> None:
        """Log what a handler raised with its traceback, and a connection error in one line, once while it repeats."""
        if not isinstance(error, NatsError | OSError):
            log.error("bus.handler_failed", exc_info=error)
        elif repr(error) != self._last_error:
            self._last_error = repr(error)
            log.warning("bus.error", **{fields.ERROR: self._last_error})

    async def closed(self) -> None:
        """Note that the connection won't come back. The client library calls it."""
        self._is_closed.set()

    async def _closes_within(self, seconds: float) -> bool:
        return await is_set_within(self._is_closed, seconds)

    async def _echoes(self, subject: str, heard: asyncio.Event) -> bool:
        if not self.is_connected:
            return True
        try:
            async with asyncio.timeout(_ECHO_TIMEOUT_SECONDS):
                await self.publish(subject, b"")
                await heard.wait()
        except (TimeoutError, Unavailable):
            return False
        return True

    def _next_token(self) -> str:
        self._tokens += 1
        return str(self._tokens)

    async def _take_answer(self, message: Message) -> None:
        answer = self._answers.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(message)


@asynccontextmanager
async def connected(url: str, *, name: str, login: Login = NO_FILES) -> AsyncIterator[Connection]:
    """A connection for the length of the block, which the server lists as `name`.

    It is established when the block begins. Answers to it have subjects below `_INBOX.<name>`. `url` may name several
    servers of a cluster, separated by commas. Raises Unavailable where it or a file of `login` can't be read, and from
    within the block when the connection closed for good.
    """
    client = Client()
    connection = Connection(client)
    await _connect(client, connection, servers=[server.strip() for server in url.split(",")], name=name, login=login)
    try:
        await connection.start()
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(connection.watch_over(), name="echo")
            try:
                yield connection
            finally:
                watch.cancel()
    finally:
        await connection.send_collected()
        await client.close()


async def _connect(client: Client, connection: Connection, *, servers: list[str], name: str, login: Login) -> None:
    tls = login.tls(servers=servers)
    login.check()
    from_url = login_in(servers)

    async def disconnected() -> None:
        if not client.is_closed:
            log.warning("bus.disconnected")
        if tls is not None:
            _reload(login, tls)

    try:
        await client.connect(
            servers,
            name=name,
            inbox_prefix=_inbox_prefix(name),
            error_cb=connection.erred,
            disconnected_cb=disconnected,
            reconnected_cb=connection.reconnected,
            closed_cb=connection.closed,
            # For every server: those that were named by another server have a URL without a login.
            user=from_url.user,
            password=from_url.password,
            token=from_url.token,
            tls=tls,
            user_credentials=login.credentials_file or None,
            nkeys_seed=login.nkey_file or None,
            max_reconnect_attempts=-1,
            reconnect_time_wait=_RECONNECT_WAIT_SECONDS,  # type: ignore[arg-type]  # a float does
            ping_interval=_PING_INTERVAL_SECONDS,
            max_outstanding_pings=2,
            pending_size=_OUTBOX_BYTES,
            skip_subject_validation=True,  # ours are escaped where they are made
        )
    except NatsError as error:
        raise Unavailable(f"connect to NATS: {error}") from error


def _reload(login: Login, tls: ssl.SSLContext) -> None:
    """Read the certificates again, as they may have been replaced. Where they cannot be read, the former ones serve."""
    try:
        login.load(tls)
    except Unavailable as problem:
        log.warning("bus.certificates_kept", **{fields.ERROR: str(problem)})


def _inbox_prefix(name: str) -> str:
    """Where all answers to a client go: so a server can be told to let nobody else read them."""
    return f"_INBOX.{subject_token(name)}"


def _give_up(answer: "asyncio.Future[Message]", subject: str) -> None:
    if not answer.done():
        answer.set_exception(Unavailable(f"request to {subject}: no answer in time"))
