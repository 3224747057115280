"""What is read from the audit log of an API server."""

import asyncio
from itertools import count
from pathlib import Path

import pytest

from metaloop.common.json import JsonObject, dumps
from metaloop.devkit.testbed.audit import AuditLog, Request, tally
from metaloop.devkit.testbed.cluster import USER_AGENT

OURS = "metaloop-reconciler/1.0"
_IDS = count()


def entry(verb: str = "create", *, agent: str = OURS, resource: str = "configmaps", subresource: str = "", name: str = "a") -> JsonObject:
    """The line of an answered request."""
    return {
        "auditID": f"request-{next(_IDS)}",
        "stage": "ResponseComplete",
        "verb": verb,
        "userAgent": agent,
        "objectRef": {"resource": resource, "subresource": subresource, "namespace": "default", "name": name},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
    }


def received(answered: JsonObject) -> JsonObject:
    """The line that the same request had when it was received."""
    return {key: value for key, value in answered.items() if key != "responseStatus"} | {"stage": "RequestReceived"}


def logged(path: Path, *lines: JsonObject) -> AuditLog:
    """The log after these lines were appended."""
    with path.open("ab") as log:
        log.writelines(dumps(each) + b"\n" for each in lines)
    return AuditLog(path)


def written(path: Path, *entries: JsonObject) -> AuditLog:
    """The log after these requests were received, and then answered."""
    return logged(path, *map(received, entries), *entries)


def request(verb: str, *, agent: str = OURS) -> Request:
    return Request(verb=verb, resource="things", namespace="", name="", user_agent=agent, code=200, at="")


async def test_request_has_the_fields_of_its_entry(tmp_path: Path) -> None:
    [found] = await written(tmp_path / "audit.log", entry("update", resource="things", subresource="status", name="p")).ours_since(0)

    assert (found.verb, found.resource, found.namespace, found.name, found.code) == ("update", "things/status", "default", "p", 201)


@pytest.mark.parametrize(
    ("agent", "is_ours"),
    [
        (OURS, True),
        ("metaloop-watcher/1.0", True),
        ("kube-controller-manager/v1.36", False),
        ("kubectl/v1.36", False),
        (USER_AGENT, False),
        ("metaloop-devkit", False),
    ],
)
def test_only_requests_of_the_services_are_ours(agent: str, *, is_ours: bool) -> None:
    assert request("get", agent=agent).is_ours is is_ours


@pytest.mark.parametrize(
    ("verb", "is_read", "is_write"),
    [
        ("get", True, False),
        ("list", True, False),
        ("watch", False, False),
        ("create", False, True),
        ("update", False, True),
        ("patch", False, True),
        ("delete", False, True),
        ("deletecollection", False, True),
    ],
)
def test_watch_is_neither_read_nor_write(verb: str, *, is_read: bool, is_write: bool) -> None:
    assert (request(verb).is_read, request(verb).is_write) == (is_read, is_write)


async def test_requests_that_write_events_are_left_out(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", entry(resource="events"), entry(resource="configmaps"))

    assert [each.resource for each in await log.ours_since(0)] == ["configmaps"]


async def test_log_is_read_from_a_mark(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", entry(name="before"))
    mark = log.mark()
    written(tmp_path / "audit.log", entry(name="after"))

    assert [each.name for each in await log.ours_since(mark)] == ["after"]


async def test_mark_of_a_missing_log_is_its_beginning(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    mark = log.mark()
    written(tmp_path / "audit.log", entry(name="first"))

    assert [each.name for each in await log.ours_since(mark)] == ["first"]


async def test_incomplete_last_line_is_not_read(tmp_path: Path) -> None:
    log = written(tmp_path / "audit.log", entry(name="whole"))
    with (tmp_path / "audit.log").open("ab") as file:
        file.write(dumps(entry(name="half"))[:20])

    assert [each.name for each in await log.ours_since(0)] == ["whole"]


async def test_requests_are_counted_by_verb_and_resource(tmp_path: Path) -> None:
    entries = [entry("create"), entry("create"), entry("update", resource="things", subresource="status")]

    assert tally(await written(tmp_path / "audit.log", *entries).ours_since(0)) == {"create configmaps": 2, "update things/status": 1}


async def test_request_is_waited_for_until_it_is_answered(tmp_path: Path) -> None:
    slow, quick = entry(name="slow"), entry(name="quick")
    log = logged(tmp_path / "audit.log", received(slow), received(quick), quick)

    reading = asyncio.create_task(log.ours_since(0))
    await asyncio.sleep(0.05)
    assert not reading.done()
    logged(tmp_path / "audit.log", slow)

    assert [each.name for each in await reading] == ["quick", "slow"]


async def test_request_without_an_answer_is_named(tmp_path: Path) -> None:
    hanging = entry("update", name="p") | {"requestURI": "/apis/things/p"}
    log = logged(tmp_path / "audit.log", received(hanging))

    with pytest.raises(TimeoutError, match="update /apis/things/p"):
        await log.ours_since(0, within_seconds=0.05)


async def test_watch_is_not_waited_for(tmp_path: Path) -> None:
    log = logged(tmp_path / "audit.log", received(entry("watch")))

    assert await log.ours_since(0, within_seconds=0.05) == []


async def test_request_that_was_received_before_the_mark_is_left_out(tmp_path: Path) -> None:
    earlier = entry(name="earlier")
    mark = logged(tmp_path / "audit.log", received(earlier)).mark()

    log = logged(tmp_path / "audit.log", earlier)

    assert await log.ours_since(mark) == []
