"""Secrets and ConfigMaps as they come, change and go, seen from calls that need them."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from time import monotonic

from driving import Shelf, asking
from webserver import Line, Request, answers, response, serving

from metaloop.common.errors import ApiStatus, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, Rejected, Verdict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.hookgateway.core.connection import Referent
from metaloop.hookgateway.follow import Contents

AUTH = Referent("Secret", "prod", "auth")
OK = Accepted(body=b"{}")


def with_token(url: str) -> JsonObject:
    return {"url": url, "authorization": {"secretRef": {"name": "auth", "namespace": "prod", "key": "token"}}}


def shelf_with(token: bytes) -> Shelf:
    shelf = Shelf()
    shelf.put(AUTH, token=token)
    return shelf


def accepted(verdict: Verdict) -> bool:
    return verdict == OK


def refused(verdict: Verdict) -> bool:
    return isinstance(verdict, Rejected)


async def wants_new_token(request: Request, line: Line) -> None:
    """A webhook that takes `Bearer new` and nothing else."""
    await line.send(response(200 if request.headers.get("authorization") == "Bearer new" else 401, b"{}"))


async def test_token_goes_with_the_request():
    async with serving(answers(200)) as hook, asking(shelf_with(b"abc").follow) as gateway:
        await gateway.ask(with_token(hook.url()))

    assert hook.requests[0].headers["authorization"] == "Bearer abc"


async def test_user_and_password_go_with_the_request():
    shelf = Shelf()
    shelf.put(AUTH, username=b"user", password=b"pass")
    async with serving(answers(200)) as hook, asking(shelf.follow) as gateway:
        await gateway.ask({"url": hook.url(), "basicAuth": {"secretRef": {"name": "auth", "namespace": "prod"}}})

    assert hook.requests[0].headers["authorization"] == "Basic " + b64encode(b"user:pass").decode()


async def test_credentials_of_an_endpoint_config_go_to_its_host_only():
    shelf = shelf_with(b"abc")
    async with serving(answers(200)) as one, serving(answers(200)) as other, asking(shelf.follow) as gateway:
        configs = [{"host": f"localhost:{one.port}", **with_token("")}]
        await gateway.ask(one.url(), endpoint_configs=configs)
        await gateway.ask(other.url(), endpoint_configs=configs)

    assert one.requests[0].headers["authorization"] == "Bearer abc"
    assert "authorization" not in other.requests[0].headers


async def test_rotated_token_is_used_by_the_next_call():
    shelf = shelf_with(b"old")
    async with serving(wants_new_token) as hook, asking(shelf.follow) as gateway:
        assert refused(await gateway.ask(with_token(hook.url())))

        shelf.put(AUTH, token=b"new")

        await gateway.ask_until(accepted, with_token(hook.url()))


async def test_call_in_flight_outlives_a_rotation():
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def script(request: Request, line: Line) -> None:
        if request.headers["authorization"] == "Bearer old":
            begun.set()
            await goes_on.wait()
        await line.send(response(200, request.headers["authorization"].encode()))

    shelf = shelf_with(b"old")
    async with serving(script) as hook, asking(shelf.follow) as gateway:
        in_flight = asyncio.create_task(gateway.ask(with_token(hook.url())))
        await begun.wait()
        shelf.put(AUTH, token=b"new")
        later = asyncio.create_task(gateway.ask_until(lambda it: it == Accepted(body=b"Bearer new"), with_token(hook.url())))
        await hook.until(lambda it: any(request.headers["authorization"] == "Bearer new" for request in it.requests))
        goes_on.set()

        assert await in_flight == Accepted(body=b"Bearer old")
        await later


async def test_missing_secret_is_named_and_heals_when_it_appears():
    shelf = Shelf()
    async with serving(answers(200)) as hook, asking(shelf.follow) as gateway:
        assert await gateway.ask(with_token(hook.url())) == Rejected(
            fault=Fault.CREDENTIALS_UNAVAILABLE, message="Secret prod/auth does not exist"
        )

        shelf.put(AUTH, token=b"abc")

        await gateway.ask_until(accepted, with_token(hook.url()))
    assert len(hook.requests) == 1


async def test_deleted_secret_is_used_no_more():
    shelf = shelf_with(b"abc")
    async with serving(answers(200)) as hook, asking(shelf.follow) as gateway:
        await gateway.ask(with_token(hook.url()))

        shelf.take(AUTH)

        await gateway.ask_until(refused, with_token(hook.url()))


async def test_unusable_value_is_refused_until_it_is_mended():
    shelf = shelf_with(b"two\r\nlines")
    async with serving(answers(200)) as hook, asking(shelf.follow) as gateway:
        verdict = await gateway.ask(with_token(hook.url()))
        assert isinstance(verdict, Rejected)
        assert verdict.fault is Fault.CREDENTIALS_INVALID

        shelf.put(AUTH, token=b"one-line")

        await gateway.ask_until(accepted, with_token(hook.url()))


async def test_object_is_followed_once_for_all_its_calls():
    begun = 0
    shelf = shelf_with(b"abc")

    async def counting(referent: Referent) -> AsyncGenerator[Contents, None]:
        nonlocal begun
        begun += 1
        async for contents in shelf.follow(referent):
            yield contents

    async with serving(answers(200)) as hook, asking(counting) as gateway:
        await asyncio.gather(*(gateway.ask(with_token(hook.url(f"/{number}"))) for number in range(20)))

    assert begun == 1


class Failing:
    """Fails as often as it is told to, then follows the shelf."""

    def __init__(self, shelf: Shelf, *failures: Exception) -> None:
        self._shelf = shelf
        self._failures = [*failures]

    async def follow(self, referent: Referent) -> AsyncGenerator[Contents, None]:
        if self._failures:
            raise self._failures.pop(0)
        async for contents in self._shelf.follow(referent):
            yield contents


FORBIDDEN = Forbidden(ApiStatus(code=403, reason="Forbidden", message='User "gateway" cannot list resource "secrets"'))


async def test_missing_permission_is_told_and_heals_when_it_is_granted():
    failing = Failing(shelf_with(b"abc"), FORBIDDEN)
    async with serving(answers(200)) as hook, asking(failing.follow) as gateway:
        verdict = await gateway.ask(with_token(hook.url()))

        assert isinstance(verdict, Rejected)
        assert verdict.fault is Fault.CREDENTIALS_UNAVAILABLE
        assert verdict.message.startswith("Secret prod/auth can't be read: the gateway lacks the permission to list and watch it.")
        assert 'User "gateway" cannot list resource "secrets"' in verdict.message
        await gateway.ask_until(accepted, with_token(hook.url()))


async def test_what_is_known_stays_in_use_while_it_cannot_be_read():
    shelf = shelf_with(b"abc")

    async def breaks_off(referent: Referent) -> AsyncGenerator[Contents, None]:
        yield shelf.objects[referent]
        raise Unavailable("the API server is away")

    async with serving(answers(200)) as hook, asking(breaks_off) as gateway:
        for _ in range(5):
            assert await gateway.ask(with_token(hook.url())) == OK


async def test_without_cluster_the_need_for_one_is_told():
    async with serving(answers(200)) as hook, asking() as gateway:
        verdict = await gateway.ask(with_token(hook.url()))

    assert isinstance(verdict, Rejected)
    assert verdict.message == "Secret prod/auth can't be read: the gateway has no cluster to read from: none is needed"


async def test_object_that_no_call_needs_any_more_is_followed_no_more():
    shelf = shelf_with(b"abc")
    async with serving(answers(200)) as hook, asking(shelf.follow) as gateway:
        await gateway.ask(with_token(hook.url()))
        assert AUTH in shelf.followers

        await gateway.gateway.collect(unused_since=monotonic())
        async with asyncio.timeout(5):
            await shelf.left.wait()

        shelf.put(AUTH, token=b"new")
        await gateway.ask(with_token(hook.url()))
        assert hook.requests[-1].headers["authorization"] == "Bearer new"
