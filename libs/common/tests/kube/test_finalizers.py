"""Objects that have a finalizer: found page by page, and released one by one, over a connection."""

import pytest
from scripted_server import ScriptedServer

from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.kube import finalizers
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import Expired, Forbidden, Unreadable
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo

THINGS = ResourceInfo(api_version="ex.io/v1", resource="things", kind="Thing", namespaced=True)
OURS = "metacontroller.io/compositecontroller-c"


def answer(code: int, body: JsonObject) -> bytes:
    wire = dumps(body)
    return b"HTTP/1.1 %d Something\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (code, len(wire), wire)


def status(code: int, reason: str) -> bytes:
    return answer(code, {"kind": "Status", "code": code, "reason": reason, "message": "no"})


def thing(name: str, *held: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "7", "finalizers": [*held]}}


def page(*items: JsonValue, resume: str = "") -> bytes:
    return answer(200, {"metadata": {"continue": resume}, "items": [*items]})


EXPIRED = status(410, "Expired")


async def found(scripted: ScriptedServer, *answers: bytes) -> list[str]:
    """The names of the holders in these answers."""
    scripted.script.extend(answers)
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        return [unstructured.name(obj) for obj in await finalizers.holders(kube, THINGS, OURS)]


async def released(scripted: ScriptedServer, obj: JsonObject, reply: bytes) -> bool:
    scripted.script.append(reply)
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        return await finalizers.release(kube, THINGS, obj, OURS)


async def test_only_objects_with_the_finalizer_are_found(scripted: ScriptedServer):
    listed = page(thing("a", OURS), thing("b"), thing("c", "other", OURS), thing("d", f"{OURS}2"), None, {"metadata": {"finalizers": OURS}})

    assert await found(scripted, listed) == ["a", "c"]


async def test_all_namespaces_are_asked_for_metadata_only(scripted: ScriptedServer):
    await found(scripted, page())

    [request] = scripted.requests
    assert request.startswith(b"GET /apis/ex.io/v1/things?limit=500 ")
    assert b"PartialObjectMetadataList" in request


async def test_list_goes_on_until_its_last_page(scripted: ScriptedServer):
    names = await found(scripted, page(thing("a", OURS), resume="two"), page(resume="three"), page(thing("b", OURS)))

    assert names == ["a", "b"]
    assert [b"continue=" in request for request in scripted.requests] == [False, True, True]
    assert b"continue=three" in scripted.requests[2]


async def test_list_that_expires_halfway_begins_again_and_shows_nothing_twice(scripted: ScriptedServer):
    names = await found(scripted, page(thing("a", OURS), resume="two"), EXPIRED, page(thing("a", OURS), thing("b", OURS)))

    assert names == ["a", "b"]


async def test_list_that_expires_three_times_is_given_up(scripted: ScriptedServer):
    with pytest.raises(Expired):
        await found(scripted, EXPIRED, EXPIRED, EXPIRED, page(thing("a", OURS)))

    assert len(scripted.requests) == 3


@pytest.mark.parametrize(
    ("reply", "expected"), [(status(403, "Forbidden"), Forbidden), (answer(200, {})[:-2] + b"[]", Unreadable)], ids=["forbidden", "no list"]
)
async def test_holders_stay_unknown_where_they_cannot_be_read(scripted: ScriptedServer, reply: bytes, expected: type[Exception]):
    """An empty list would mean that everything was released."""
    with pytest.raises(expected):
        await found(scripted, reply)


async def test_object_that_was_written_is_released(scripted: ScriptedServer):
    assert await released(scripted, thing("a", "first", OURS, "last"), answer(200, thing("a", "first", "last")))
    assert scripted.requests[0].startswith(b"PATCH /apis/ex.io/v1/namespaces/n/things/a ")
    assert b"application/merge-patch+json" in scripted.requests[0]


@pytest.mark.parametrize("reply", [status(404, "NotFound"), status(409, "Conflict")], ids=["gone", "changed"])
async def test_object_that_is_gone_or_changed_was_not_released_by_us(scripted: ScriptedServer, reply: bytes):
    assert not await released(scripted, thing("a", OURS), reply)


async def test_release_that_is_forbidden_is_an_error(scripted: ScriptedServer):
    with pytest.raises(Forbidden):
        await released(scripted, thing("a", OURS), status(403, "Forbidden"))
