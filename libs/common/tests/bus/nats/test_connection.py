import asyncio

import pytest

from metaloop.common.bus.nats.connection import Connection, Message, connected
from metaloop.common.errors import Unavailable
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker


async def echo(connection: Connection, subject: str = "echo") -> None:
    """Answers each request with what it says, in capitals."""

    async def answer(message: Message) -> None:
        await connection.publish(message.reply, message.data.upper())

    await connection.subscribe(subject, answer)


async def test_a_request_gets_its_answer(connection: Connection):
    await echo(connection)

    assert await connection.request("echo", b"hello", timeout_seconds=30.0) == b"HELLO"


async def test_many_requests_at_once_get_their_own_answers(connection: Connection):
    await echo(connection)

    answers = await asyncio.gather(*(connection.request("echo", b"n%d" % number, timeout_seconds=30.0) for number in range(500)))

    assert answers == [b"N%d" % number for number in range(500)]


async def test_a_request_to_nobody_fails_at_once(connection: Connection):
    with pytest.raises(Unavailable, match="nobody is there"):
        await connection.request("nobody", b"", timeout_seconds=30.0)


async def test_a_request_that_is_not_answered_fails_in_time(connection: Connection):
    async def ignore(_: Message) -> None: ...

    await connection.subscribe("silent", ignore)

    with pytest.raises(Unavailable, match="no answer in time"):
        await connection.request("silent", b"", timeout_seconds=0.05)


async def test_a_message_that_can_not_be_handled_does_not_end_the_others(connection: Connection):
    async def answer(message: Message) -> None:
        if message.data == b"poison":
            raise ValueError(message.data)
        await connection.publish(message.reply, b"well")

    await connection.subscribe("careful", answer)
    await connection.publish("careful", b"poison")

    assert await connection.request("careful", b"food", timeout_seconds=30.0) == b"well"


async def test_subscriptions_live_through_a_crash_of_the_server(broker: Broker, connection: Connection):
    reconnections: list[None] = []
    await echo(connection)

    with connection.on_reconnect(lambda: reconnections.append(None)):
        await broker.kill()
        await eventually(lambda: not connection.is_connected)
        await broker.restart()
        await eventually(lambda: bool(reconnections))

    assert await connection.request("echo", b"again", timeout_seconds=30.0) == b"AGAIN"


async def test_who_wanted_to_know_of_reconnections_is_forgotten_with_its_block(connection: Connection):
    """A watcher may come to lead and lose it again for months, and listens anew each time."""
    heard: list[str] = []

    with connection.on_reconnect(lambda: heard.append("outer")):
        with connection.on_reconnect(lambda: heard.append("inner")):
            pass
        await connection.reconnected()

    assert heard == ["outer"]


async def test_while_the_server_is_down_requests_and_checks_fail(broker: Broker, connection: Connection):
    await broker.kill()
    await eventually(lambda: not connection.is_connected)

    with pytest.raises(Unavailable):
        await connection.request("echo", b"", timeout_seconds=2.0)
    with pytest.raises(Unavailable):
        await connection.check()


async def test_a_check_asks_jetstream(connection: Connection):
    await connection.check()


async def test_what_is_published_while_the_server_is_down_is_sent_when_it_is_back(broker: Broker, connection: Connection):
    heard: list[bytes] = []

    async def hear(message: Message) -> None:
        heard.append(message.data)

    await connection.subscribe("later", hear)
    await broker.kill()
    await eventually(lambda: not connection.is_connected)
    await connection.publish("later", b"kept")
    await broker.restart()

    await eventually(lambda: heard == [b"kept"])


@pytest.mark.chaos
async def heard_by(connection: Connection, subject: str = "heard") -> list[bytes]:
    """The bodies of the messages to `subject` from now on, in order."""
    heard: list[bytes] = []

    async def hear(message: Message) -> None:
        heard.append(message.data)

    await connection.subscribe(subject, hear)
    await connection.check()
    return heard


async def test_what_is_published_soon_is_sent_by_itself(connection: Connection):
    heard = await heard_by(connection)

    connection.publish_soon("heard", b"one")
    connection.publish_soon("heard", b"two")

    await eventually(lambda: heard == [b"one", b"two"])


async def test_what_is_published_soon_goes_before_the_next_message(connection: Connection):
    heard = await heard_by(connection)

    connection.publish_soon("heard", b"one")
    await connection.publish("heard", b"two")
    connection.publish_soon("heard", b"three")

    await eventually(lambda: heard == [b"one", b"two", b"three"])


async def test_what_is_published_soon_is_sent_before_the_connection_closes(broker: Broker, connection: Connection):
    heard = await heard_by(connection)

    async with connected(broker.url, name="brief") as brief:
        brief.publish_soon("heard", b"goodbye")

    await eventually(lambda: heard == [b"goodbye"])


async def test_no_more_is_published_soon_than_can_wait_for_the_server(broker: Broker, connection: Connection):
    await broker.kill()
    await eventually(lambda: not connection.is_connected)

    for _ in range(16):
        await connection.publish("heard", bytes(1023 * 1024))

    with pytest.raises(Unavailable, match="too much waits"):
        connection.publish_soon("heard", bytes(1024 * 1024))
    await broker.restart()
    await eventually(lambda: connection.is_connected)
    await connection.check()


async def test_a_server_that_stood_still_for_long_is_reached_again(broker: Broker, connection: Connection):
    """The connection stays open meanwhile, and carries nothing."""
    await echo(connection)
    broker.daemon.pause()
    await eventually(lambda: not connection.is_connected, within_seconds=60.0)
    broker.daemon.resume()
    await eventually(lambda: connection.is_connected)

    assert await connection.request("echo", b"again", timeout_seconds=30.0) == b"AGAIN"


async def test_listening_ends_with_its_block(connection: Connection):
    heard: list[bytes] = []

    async def hear(message: Message) -> None:
        heard.append(message.data)

    async with connection.listening("topic", hear):
        await connection.publish("topic", b"during")
        await eventually(lambda: heard == [b"during"])

    with pytest.raises(Unavailable, match="nobody is there"):
        await connection.request("topic", b"", timeout_seconds=1.0)


async def test_a_connection_that_closed_for_good_ends_who_depends_on_it(broker: Broker):
    async def depend_on_it() -> None:
        async with connected(broker.url, name="doomed") as connection:
            await connection._client.close()
            await asyncio.Event().wait()

    with pytest.raises(BaseExceptionGroup) as failure:
        await depend_on_it()

    assert failure.group_contains(Unavailable)


async def test_any_server_of_several_will_do(broker: Broker):
    async with connected(f"nats://127.0.0.1:1, {broker.url}", name="test") as connection:
        await connection.check()


@pytest.mark.parametrize("url", ["", "nats://[::1", "nats://a:b:c:d"])
async def test_a_url_that_cannot_be_read_is_told_as_ours(url: str):
    with pytest.raises(Unavailable, match="connect to NATS"):
        async with connected(url, name="test"):
            pass


async def test_answers_go_to_subjects_below_the_name_of_the_client(broker: Broker):
    """So a server can be told to let nobody else read them."""
    async with connected(broker.url, name="a client") as connection:
        assert connection.new_inbox().startswith("_INBOX.a%20client.")
        assert await connection.request("$JS.API.INFO", b"", timeout_seconds=30)
