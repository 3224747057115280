"""Schemas are fetched when they are needed, and nothing fails without them."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from known_schemas import GADGETS, WIDGETS, document, running

from metaloop.common.errors import MetaloopError, Unavailable
from metaloop.common.json import dumps
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.testing.clock import FakeClock
from metaloop.common.testing.polling import eventually
from metaloop.reconciler.core.apply.schema import guessed_schema
from metaloop.reconciler.schemas import INDEX

OTHERS = ResourceInfo(api_version="apps/v1", resource="others", kind="Other", namespaced=True)


@dataclass
class FakeSource:
    """An API server with one document for each of two versions."""

    hash: str = "1"
    failing: MetaloopError | None = None
    documents: dict[str, bytes] = field(default_factory=dict)
    """What is served at some paths in place of a proper document."""
    requests: Counter[str] = field(default_factory=Counter)

    async def request(self, method: str, path: str) -> bytes:
        """The index, or the document."""
        assert method == "GET"
        self.requests[path] += 1
        if self.failing is not None:
            raise self.failing
        if path in self.documents:
            return self.documents[path]
        if path != INDEX:
            return dumps(document())
        return dumps({"paths": {f"apis/{name}": {"serverRelativeURL": f"/{name}?hash={self.hash}"} for name in ("apps/v1", "ex.io/v1")}})


async def test_schema_is_guessed_until_it_is_fetched():
    async with running(FakeSource(), FakeClock()) as schemas:
        assert schemas.of(GADGETS) is guessed_schema(GADGETS)

        await schemas.wait_for([GADGETS])

        assert schemas.of(GADGETS).of("spec").of("ports").keys == ("port", "protocol")


async def test_each_document_is_fetched_once():
    source = FakeSource()
    async with running(source, FakeClock()) as schemas:
        await schemas.wait_for([GADGETS, WIDGETS])
        await schemas.wait_for([GADGETS, WIDGETS])
        for _ in range(3):
            schemas.of(GADGETS)

    assert source.requests == {INDEX: 1, "/apps/v1?hash=1": 1, "/ex.io/v1?hash=1": 1}


async def test_changed_document_is_fetched_again_after_a_while():
    source, clock = FakeSource(), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([GADGETS])
        before = schemas.of(GADGETS)

        source.hash = "2"
        clock.advance(601.0)
        schemas.of(GADGETS)
        await eventually(lambda: schemas.of(GADGETS) is not before)

    assert source.requests["/apps/v1?hash=2"] == 1


async def test_changed_document_is_fetched_again_soon_where_children_differ():
    source, clock = FakeSource(), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([GADGETS])
        before = schemas.of(GADGETS)
        source.hash = "2"

        schemas.recheck()
        clock.advance(31.0)
        assert schemas.of(GADGETS) is before
        schemas.recheck()
        await eventually(lambda: schemas.of(GADGETS) is not before)

    assert source.requests[INDEX] == 2


async def test_unchanged_document_is_not():
    source, clock = FakeSource(), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([GADGETS])
        clock.advance(601.0)
        schemas.of(GADGETS)
        await eventually(lambda: source.requests[INDEX] == 2)

    assert source.requests["/apps/v1?hash=1"] == 1


async def test_api_server_that_tells_nothing_fails_nobody():
    source, clock = FakeSource(failing=Unavailable("no answer")), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([GADGETS])
        assert schemas.of(GADGETS) is guessed_schema(GADGETS)

        source.failing = None
        clock.advance(31.0)
        await eventually(lambda: schemas.of(GADGETS) is not guessed_schema(GADGETS))


async def test_kind_that_no_document_knows_is_guessed():
    async with running(FakeSource(), FakeClock()) as schemas:
        await schemas.wait_for([OTHERS])

        assert schemas.of(OTHERS) is guessed_schema(OTHERS)


@pytest.mark.parametrize("document", [b"<html>", b"[]"])
@pytest.mark.parametrize("first", ["apps/v1", "ex.io/v1"])
async def test_unreadable_document_keeps_no_other_schema_back(document: bytes, first: str):
    broken, intact = (GADGETS, WIDGETS) if GADGETS.api_version == first else (WIDGETS, GADGETS)
    source, clock = FakeSource(documents={f"/{broken.api_version}?hash=1": document}), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([broken, intact])

        assert schemas.of(intact) is not guessed_schema(intact)
        assert schemas.of(broken) is guessed_schema(broken)


async def test_unreadable_document_is_fetched_again_soon():
    source, clock = FakeSource(documents={"/apps/v1?hash=1": b"<html>"}), FakeClock()
    async with running(source, clock) as schemas:
        await schemas.wait_for([GADGETS])
        source.documents.clear()
        clock.advance(31.0)

        await eventually(lambda: schemas.of(GADGETS) is not guessed_schema(GADGETS))
