"""The webhook of the bench, as the process that it is: what it answers, and what it remembers of its calls."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bench.hook_process import HookProcess
from metaloop.common.json import JsonObject, dumps, loads


@pytest_asyncio.fixture
async def hook(tmp_path: Path) -> AsyncIterator[HookProcess]:
    async with HookProcess.start(tmp_path) as hook:
        yield hook


def request(name: str = "p", *, children: int = 3, observed: int = 0, finalizing: bool = False) -> JsonObject:
    """What a reconciler sends."""
    parent: JsonObject = {"metadata": {"name": name, "generation": 2}, "spec": {"children": children, "text": "hello"}}
    there: JsonObject = {f"{name}-{index}": {} for index in range(observed)}
    return {"parent": parent, "children": {"ConfigMap.v1": there}, "finalizing": finalizing}


async def call(hook: HookProcess, sent: JsonObject) -> JsonObject:
    """What it answers."""
    async with hook.session.post(hook.sync_url, data=dumps(sent)) as response:
        return loads(await response.read())


async def test_as_many_children_are_wanted_as_the_parent_says(hook: HookProcess) -> None:
    answered = await call(hook, request(children=2, observed=1))

    assert answered == {
        "status": {"children": 1},
        "children": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"p-{index}", "labels": {"parent": "p"}},
                "data": {"text": "hello"},
            }
            for index in range(2)
        ],
    }


async def test_an_input_is_mapped_to_one_output_with_both_texts(hook: HookProcess) -> None:
    source: JsonObject = {"metadata": {"name": "i"}, "data": {"text": "world"}}
    sent = {"parent": request()["parent"], "mapKey": "key", "input": source, "outputs": {"ConfigMap.v1": {}}}

    async with hook.session.post(hook.map_url, data=dumps(sent)) as response:
        answered = loads(await response.read())

    output = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "i-out", "labels": {"of": "p"}},
        "data": {"text": "hello world"},
    }
    assert answered == {"outputs": [output]}
    assert [(called.parent, called.generation, called.observed) for called in await hook.calls()] == [("i", 2, 0)]


@pytest.mark.parametrize(("observed", "finalized"), [(2, False), (0, True)])
async def test_parent_is_finalized_once_its_children_are_gone(hook: HookProcess, observed: int, *, finalized: bool) -> None:
    answered = await call(hook, request(observed=observed, finalizing=True))

    assert (answered["children"], answered["finalized"]) == ([], finalized)


async def test_calls_are_remembered_in_their_order_until_they_are_forgotten(hook: HookProcess) -> None:
    before = time.monotonic()
    await call(hook, request("a"))
    await call(hook, request("b", observed=2))

    calls = await hook.calls()
    await hook.forget_calls()

    assert [(each.parent, each.generation, each.observed) for each in calls] == [("a", 2, 0), ("b", 2, 2)]
    assert before <= calls[0].at <= calls[1].at <= time.monotonic()
    assert await hook.calls() == []


async def test_answers_take_as_long_as_they_are_told_to_and_do_not_wait_for_one_another(hook: HookProcess) -> None:
    await hook.delay(0.3)
    began = time.monotonic()

    await asyncio.gather(*[call(hook, request(f"p{index}")) for index in range(8)])

    took = time.monotonic() - began
    assert took >= 0.3
    assert took < 8 * 0.3


async def test_component_is_answered_in_waves_with_gates(hook: HookProcess) -> None:
    spec: JsonObject = {"children": 4, "waves": 2, "gated": True, "text": "hello"}

    async with hook.session.post(
        hook.generate_url, data=dumps({"parent": {"metadata": {"name": "c", "generation": 1}, "spec": spec}})
    ) as response:
        children = loads(await response.read())["children"]

    orders = {each["metadata"]["name"]: each["metadata"]["annotations"]["bench.example.com/apply-order"] for each in children}
    assert orders == {"c-0": "0", "c-1": "0", "c-2": "1", "c-3": "1", "c-gate-0": "0", "c-gate-1": "1"}
    hinted = [each["kind"] for each in children if "bench.example.com/status-hint" in each["metadata"]["annotations"]]
    assert hinted == ["Gate", "Gate"]
    assert [call.parent for call in await hook.calls()] == ["c"]
