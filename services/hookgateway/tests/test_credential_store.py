"""Calls that need Secrets and ConfigMaps, which are created, changed and deleted meanwhile."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from time import monotonic

from in_process import FakeCluster, running_gateway
from webserver import Request, ServerConnection, answers, response, serving

from metaloop.common.errors import ApiStatus, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, Rejected, Verdict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.hookgateway.core.connection import ObjectRef
from metaloop.hookgateway.watch_objects import ObjectData

AUTH = ObjectRef("Secret", "prod", "auth")
OK = Accepted(body=b"{}")


def with_token(url: str) -> JsonObject:
    return {"url": url, "authorization": {"secretRef": {"name": "auth", "namespace": "prod", "key": "token"}}}


def cluster_with(token: bytes) -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(AUTH, token=token)
    return cluster


def accepted(verdict: Verdict) -> bool:
    return verdict == OK


def refused(verdict: Verdict) -> bool:
    return isinstance(verdict, Rejected)


async def wants_new_token(request: Request, connection: ServerConnection) -> None:
    """A webhook that takes `Bearer new` and nothing else."""
    await connection.send(response(200 if request.headers.get("authorization") == "Bearer new" else 401, b"{}"))


async def test_token_goes_with_the_request():
    async with serving(answers(200)) as hook, running_gateway(cluster_with(b"abc")) as gateway:
        await gateway.call(with_token(hook.url()))

    assert hook.requests[0].headers["authorization"] == "Bearer abc"


async def test_user_and_password_go_with_the_request():
    cluster = FakeCluster()
    cluster.put(AUTH, username=b"user", password=b"pass")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        await gateway.call({"url": hook.url(), "basicAuth": {"secretRef": {"name": "auth", "namespace": "prod"}}})

    assert hook.requests[0].headers["authorization"] == "Basic " + b64encode(b"user:pass").decode()


async def test_credentials_of_an_endpoint_config_go_to_its_host_only():
    cluster = cluster_with(b"abc")
    async with serving(answers(200)) as one, serving(answers(200)) as other, running_gateway(cluster) as gateway:
        configs = [{"host": f"localhost:{one.port}", **with_token("")}]
        await gateway.call(one.url(), endpoint_configs=configs)
        await gateway.call(other.url(), endpoint_configs=configs)

    assert one.requests[0].headers["authorization"] == "Bearer abc"
    assert "authorization" not in other.requests[0].headers


async def test_rotated_token_is_used_by_the_next_call():
    cluster = cluster_with(b"old")
    async with serving(wants_new_token) as hook, running_gateway(cluster) as gateway:
        assert refused(await gateway.call(with_token(hook.url())))

        cluster.put(AUTH, token=b"new")

        await gateway.call_until(accepted, with_token(hook.url()))


async def test_call_in_flight_survives_a_rotation():
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def script(request: Request, connection: ServerConnection) -> None:
        if request.headers["authorization"] == "Bearer old":
            begun.set()
            await goes_on.wait()
        await connection.send(response(200, request.headers["authorization"].encode()))

    cluster = cluster_with(b"old")
    async with serving(script) as hook, running_gateway(cluster) as gateway:
        in_flight = asyncio.create_task(gateway.call(with_token(hook.url())))
        await begun.wait()
        cluster.put(AUTH, token=b"new")
        later = asyncio.create_task(gateway.call_until(lambda it: it == Accepted(body=b"Bearer new"), with_token(hook.url())))
        await hook.until(lambda it: any(request.headers["authorization"] == "Bearer new" for request in it.requests))
        goes_on.set()

        assert await in_flight == Accepted(body=b"Bearer old")
        await later


async def test_missing_secret_is_named_until_it_appears():
    cluster = FakeCluster()
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        assert await gateway.call(with_token(hook.url())) == Rejected(
            fault=Fault.CREDENTIALS_UNAVAILABLE, message="Secret prod/auth does not exist"
        )

        cluster.put(AUTH, token=b"abc")

        await gateway.call_until(accepted, with_token(hook.url()))
    assert len(hook.requests) == 1


async def test_deleted_secret_is_no_longer_used():
    cluster = cluster_with(b"abc")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        await gateway.call(with_token(hook.url()))

        cluster.delete(AUTH)

        await gateway.call_until(refused, with_token(hook.url()))


async def test_unusable_value_is_refused_until_it_is_corrected():
    cluster = cluster_with(b"two\r\nlines")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        verdict = await gateway.call(with_token(hook.url()))
        assert isinstance(verdict, Rejected)
        assert verdict.fault is Fault.CREDENTIALS_INVALID

        cluster.put(AUTH, token=b"one-line")

        await gateway.call_until(accepted, with_token(hook.url()))


class CountingCluster(FakeCluster):
    """Counts the watches that were begun."""

    begun = 0

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        self.begun += 1
        async for data in super().watch(ref):
            yield data


async def test_object_is_watched_once_for_all_calls():
    cluster = CountingCluster()
    cluster.put(AUTH, token=b"abc")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        await asyncio.gather(*(gateway.call(with_token(hook.url(f"/{number}"))) for number in range(20)))

    assert cluster.begun == 1


class FailingCluster:
    """Fails as often as it is told to, then works."""

    def __init__(self, cluster: FakeCluster, *failures: Exception) -> None:
        self._cluster = cluster
        self._failures = [*failures]

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        if self._failures:
            raise self._failures.pop(0)
        async for data in self._cluster.watch(ref):
            yield data


FORBIDDEN = Forbidden(ApiStatus(code=403, reason="Forbidden", message='User "gateway" cannot list resource "secrets"'))


async def test_missing_permission_is_reported_until_it_is_granted():
    cluster = FailingCluster(cluster_with(b"abc"), FORBIDDEN)
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        verdict = await gateway.call(with_token(hook.url()))

        assert isinstance(verdict, Rejected)
        assert verdict.fault is Fault.CREDENTIALS_UNAVAILABLE
        assert verdict.message.startswith("Secret prod/auth can't be read: the gateway lacks the permission to list and watch it.")
        assert 'User "gateway" cannot list resource "secrets"' in verdict.message
        await gateway.call_until(accepted, with_token(hook.url()))


class BreakingCluster:
    """Shows an object once, then breaks off."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        yield self._cluster.objects[ref]
        raise Unavailable("the API server is away")


async def test_known_data_stays_in_use_while_the_object_can_not_be_read():
    async with serving(answers(200)) as hook, running_gateway(BreakingCluster(cluster_with(b"abc"))) as gateway:
        for _ in range(5):
            assert await gateway.call(with_token(hook.url())) == OK


async def test_without_a_cluster_the_message_says_that_one_is_needed():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        verdict = await gateway.call(with_token(hook.url()))

    assert isinstance(verdict, Rejected)
    assert verdict.message == "Secret prod/auth can't be read: the gateway has no cluster to read from: none is needed"


async def test_object_that_no_call_needs_any_more_is_not_watched():
    cluster = cluster_with(b"abc")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        await gateway.call(with_token(hook.url()))
        assert AUTH in cluster.watches

        await gateway.gateway.clean_up(unused_since=monotonic())
        async with asyncio.timeout(30):
            await cluster.watch_ended.wait()

        cluster.put(AUTH, token=b"new")
        await gateway.call(with_token(hook.url()))
        assert hook.requests[-1].headers["authorization"] == "Bearer new"


class CrashingOnce(FakeCluster):
    """A cluster whose first answer about the Secret makes the gateway crash."""

    has_crashed = False

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        if not self.has_crashed:
            self.has_crashed = True
            raise ExceptionGroup("unforeseen", [RuntimeError("x")])
        async for data in super().watch(ref):
            yield data


async def test_object_that_crashes_its_watch_harms_no_other_and_is_read_again():
    cluster = CrashingOnce()
    cluster.put(AUTH, token=b"abc")
    async with serving(answers(200)) as hook, running_gateway(cluster) as gateway:
        first = await gateway.call(with_token(hook.url()))
        await gateway.call_until(accepted, with_token(hook.url()))

    assert isinstance(first, Rejected)
    assert "an unforeseen error" in first.message
