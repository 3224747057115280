"""The parts of a MapController's parents: which are marked by what, and what their claims show."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from metaloop.common.api.map import parse_map
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.kinds.world import ClusterScopedInput, NoStatus
from metaloop.watcher.core.part_counts import PartCounts, lower_camel
from metaloop.watcher.core.rules.parts import Parts
from metaloop.watcher.core.watch import WatchId
from metaloop.watcher.core.watchset import Waiting, instance_of
from metaloop.watcher.sweeps import KEYS_PER_TURN

from ..mapping import PODS, WIDE, Mapped, map_spec
from ..objects import CONFIGMAPS, HELLOS, owned_by

NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
WEB = {"app": "web"}
MANY = 2 * KEYS_PER_TURN + 1


@pytest.fixture
def world() -> Mapped:
    """A parent that selects the label app=web, and two such Pods; nothing is marked."""
    world = Mapped()
    world.start()
    world.see_parent(match=WEB)
    for name in ("a", "b"):
        world.see(PODS, name, labels=WEB)
    world.marked()
    return world


@pytest.fixture
def many() -> Mapped:
    """More Pods with the label app=web than are marked in two turns, and no parent yet."""
    world = Mapped()
    world.start()
    for number in range(MANY):
        world.see(PODS, f"c{number}", labels=WEB)
    return world


# -- what is marked ----------------------------------------------------------------------------------------------------


def test_start_marks_every_parent_and_every_input():
    world = Mapped()
    world.see_parent(match=WEB)
    world.see(PODS, "a", labels=WEB)
    world.see(PODS, "b", labels={"app": "db"})

    world.start()

    assert world.marked() == {"p/", "p/uid-n-a"}


@pytest.mark.parametrize("match", [None, {}])
def test_parent_without_a_selector_has_every_object_in_its_namespace_as_input(match: dict[str, str] | None):
    world = Mapped()
    world.see(PODS, "a")
    world.see(PODS, "elsewhere", namespace="other")
    world.start()

    world.see_parent(match=match)

    assert world.marked() == {"p/", "p/uid-n-a"}


def test_cluster_scoped_parent_has_inputs_in_all_namespaces():
    world = Mapped(WIDE)
    world.start()
    world.see_parent(match=WEB)
    world.marked()

    world.see(PODS, "a", labels=WEB)
    world.see(PODS, "b", labels=WEB, namespace="other")

    assert world.marked() == {"p/uid-n-a", "p/uid-other-b"}


def test_input_that_changes_marks_its_part_alone(world: Mapped):
    world.see(PODS, "a", labels=WEB)

    assert world.marked() == {"p/uid-n-a"}


def test_new_input_marks_its_part_at_once_and_its_parent_later(world: Mapped):
    world.see(PODS, "c", labels=WEB)

    assert world.marked() == {"p/uid-n-c"}
    assert world.marked_later() == {"p/"}


def test_inputs_that_go_on_coming_mark_the_parent_every_ten_seconds(world: Mapped):
    marks = 0
    for number in range(60):
        world.see(PODS, f"c{number}", labels=WEB)
        world.routing.clock.advance(0.5)
        world.routing.queue.advance()
        marks += "p/" in world.marked()

    assert 2 <= marks <= 3


def test_burst_of_inputs_marks_the_parent_once(world: Mapped):
    for number in range(50):
        world.see(PODS, f"c{number}", labels=WEB)
        world.routing.clock.advance(0.01)
        world.routing.queue.advance()

    assert "p/" not in world.marked()
    assert world.marked_later() == {"p/"}


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"app": "db"}},
        {"labels": WEB, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"labels": WEB, "ownerReferences": owned_by("p")},
    ],
    ids=["relabelled", "being deleted", "controlled by the parent"],
)
def test_object_that_is_no_input_any_more_marks_its_part_while_it_has_outputs(world: Mapped, fields: dict[str, object]):
    world.see_output("out", of="uid-n-a")
    world.marked()

    world.see(PODS, "a", **fields)

    assert world.marked() == {"p/uid-n-a"}
    assert world.shown("uid-n-a") == ([], ["out"])
    assert world.marked_later() == {"p/"}


def test_input_that_is_gone_without_outputs_ends_its_part(world: Mapped):
    gone = world.see(PODS, "a", labels=WEB)

    world.lose(PODS, gone)

    assert world.marked() == set()
    assert world.routing.refusal(world.key("uid-n-a")) == "nothing is left of this part"


def test_input_that_comes_back_with_another_uid_is_another_input(world: Mapped):
    world.see_output("out", of="uid-n-a")
    world.marked()

    world.see(PODS, "a", labels=WEB, uid="another")

    assert world.marked() == {"p/uid-n-a", "p/another"}
    assert world.shown("uid-n-a") == ([], ["out"])
    assert world.shown("another") == (["a"], [])


def test_input_that_is_relabelled_back_finds_its_outputs_again(world: Mapped):
    world.see_output("out", of="uid-n-a")
    world.see(PODS, "a", labels={})
    world.marked()

    world.see(PODS, "a", labels=WEB)

    assert world.marked() == {"p/uid-n-a"}
    assert world.shown("uid-n-a") == (["a"], ["out"])


def test_output_marks_the_part_that_it_was_made_for(world: Mapped):
    world.see_output("out", of="uid-n-a")

    assert world.marked() == {"p/uid-n-a"}
    assert world.marked_later() == {"p/"}


def test_output_marks_its_part_by_its_version_since_it_may_be_our_own_write(world: Mapped):
    seen = world.see_output("out", of="uid-n-a")

    entry = world.routing.queue.entry(world.key("uid-n-a"))
    assert entry is not None
    assert entry.mark is not None
    assert entry.mark.versions == {seen.resource_version}


def test_output_that_changes_without_its_conditions_does_not_mark_the_parent(world: Mapped):
    world.see_output("out", of="uid-n-a", ready="True")
    world.marked_later()

    world.see_output("out", of="uid-n-a", ready="True", labels={"x": "y"})

    assert world.marked() == {"p/uid-n-a"}
    assert world.marked_later() == set()


def test_output_of_another_controller_or_parent_marks_nothing(world: Mapped):
    world.see_output("one", of="uid-n-a", by="another")
    world.see_output("two", of="uid-n-a", ownerReferences=owned_by("p", uid="of a namesake"))
    world.see_output("three", of="uid-n-a", annotations={})

    assert world.marked() | world.marked_later() == set()


def test_last_output_of_a_part_without_input_ends_the_part(world: Mapped):
    out = world.see_output("out", of="gone")
    assert world.marked() == {"p/gone"}

    world.lose(CONFIGMAPS, out)

    assert world.marked() == set()


def test_output_whose_map_key_is_edited_marks_both_parts(world: Mapped):
    world.see_output("out", of="uid-n-a")
    world.marked()

    world.see_output("out", of="uid-n-b")

    assert world.marked() == {"p/uid-n-a", "p/uid-n-b"}


def test_parent_that_changes_marks_all_of_its_parts(world: Mapped):
    world.see_output("detached", of="gone")
    world.marked()

    world.see_parent(match=WEB)

    assert world.marked() == {"p/", "p/uid-n-a", "p/uid-n-b", "p/gone"}


def test_status_of_a_parent_marks_the_parent_alone_and_later(world: Mapped):
    world.see_parent("q", match=WEB, generation=1)
    world.marked()
    world.marked_later()

    world.see_parent("q", match=WEB, generation=1)

    assert world.marked() == set()
    assert world.marked_later() == {"q/"}


def test_edited_selector_marks_former_and_new_inputs(world: Mapped):
    world.see(PODS, "c", labels={"app": "db"})
    world.marked()

    world.see_output("out", of="uid-n-b")
    world.marked()

    world.see_parent(match={"app": "db"})

    assert world.marked() == {"p/", "p/uid-n-b", "p/uid-n-c"}
    assert world.shown("uid-n-b") == ([], ["out"])
    assert world.shown("uid-n-c") == (["c"], [])
    assert world.routing.refusal(world.key("uid-n-a")) == "nothing is left of this part"


@pytest.mark.parametrize("selector", [{"matchLabels": {"app": "db"}}, {"matchLabels": 3}], ids=["another", "malformed"])
def test_inputs_that_an_edited_selector_leaves_fail_no_longer(world: Mapped, selector: JsonObject):
    world.report("uid-n-a", Fault.TIMED_OUT)

    world.see_parent(spec={"selector": selector})

    assert (world.failing()["count"], world.stats.failing) == (0, {})


def test_inputs_that_an_edited_selector_leaves_are_not_waited_for_after_a_start():
    world = Mapped()
    world.see_parent(match=WEB)
    world.see(PODS, "a", labels=WEB)
    world.start()

    world.see_parent(match={"app": "db"})
    world.report("")

    assert world.stats.unsynced == set()


def test_outputs_of_a_former_parent_of_the_name_are_forgotten(world: Mapped):
    world.see_output("out", of="gone")
    world.report("gone", Fault.TIMED_OUT)

    world.see_parent(match=WEB, uid="another")

    assert world.stats.failing == {}
    assert world.routing.refusal(world.key("gone")) == "nothing is left of this part"


def test_malformed_selector_marks_the_parent_alone(world: Mapped):
    world.see_output("out", of="uid-n-a")
    world.marked()

    world.see_parent(spec={"selector": {"matchLabels": 3}})

    assert world.marked() == {"p/"}


def test_parents_over_the_same_inputs_are_marked_each(world: Mapped):
    world.see_parent("q", match=WEB)
    world.marked()

    world.see(PODS, "a", labels=WEB)

    assert world.marked() == {"p/uid-n-a", "q/uid-n-a"}


@pytest.mark.parametrize("is_deleting", [True, False])
def test_parent_that_goes_ends_its_parts(world: Mapped, *, is_deleting: bool):
    parent = world.see_parent(match=WEB)

    if is_deleting:
        world.see_parent(match=WEB, deletionTimestamp="2026-01-01T00:00:00Z")
    else:
        world.lose(HELLOS, parent)
    marked = world.marked()
    world.see(PODS, "a", labels=WEB)

    assert marked <= {"p/"}
    assert world.marked() == set()


async def test_parts_of_a_parent_that_goes_end_in_turns(many: Mapped):
    parent = many.see_parent(match=WEB)
    await turns(3)
    left = [waiting_parts(many)]

    many.lose(HELLOS, parent)
    for _ in range(3):
        left.append(waiting_parts(many))
        await turns(1)

    assert left == [MANY, MANY - KEYS_PER_TURN, MANY - 2 * KEYS_PER_TURN, 0]
    assert many.stats.unsynced == set()


async def test_parts_of_a_parent_that_comes_back_at_once_go_on(many: Mapped):
    parent = many.see_parent(match=WEB)
    await turns(3)

    many.lose(HELLOS, parent)
    many.see_parent(match=WEB, uid="another")
    await turns(6)

    assert waiting_parts(many) == MANY


async def test_input_that_is_selected_again_before_its_part_has_ended_goes_on(many: Mapped):
    many.see_parent(match=WEB)
    await turns(3)
    last = f"c{MANY - 1}"

    many.see_parent(match={"app": "db"})
    many.see(PODS, last, labels={"app": "db"})
    await turns(6)

    assert {part for part in many.marked() if part != "p/"} == {f"p/uid-n-{last}"}


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def waiting_parts(world: Mapped) -> int:
    return sum(bool(key.part) for key in world.routing.marks())


def test_output_is_never_an_input_of_its_own_parent():
    world = Mapped(inputs=(CONFIGMAPS,))
    world.start()
    world.see_parent()
    world.see(CONFIGMAPS, "source")
    world.marked()

    world.see_output("copy", of="uid-n-source")

    assert world.marked() == {"p/uid-n-source"}
    assert world.shown("uid-n-source") == (["source"], ["copy"])


def test_part_that_waits_for_a_name_is_marked_when_the_name_is_free(world: Mapped):
    out = world.see_output("out", of="uid-n-a")
    world.report("uid-n-b", Fault.NAME_TAKEN, rivals=("uid-n-a",))
    world.marked()

    world.lose(CONFIGMAPS, out)

    assert world.marked() == {"p/uid-n-a", "p/uid-n-b"}


# -- what is counted ---------------------------------------------------------------------------------------------------


def test_summary_counts_inputs_and_outputs_and_their_conditions(world: Mapped):
    for name, ready in (("one", "True"), ("two", "True"), ("three", "False")):
        world.see_output(name, of="uid-n-a", ready=ready)

    assert world.summary()["inputs"] == {"pods": {"total": 2}}
    assert world.summary()["outputs"] == {"configmaps": {"total": 3, "ready": 2}}


def test_condition_that_no_output_has_any_more_is_not_counted(world: Mapped):
    world.see_output("one", of="uid-n-a", ready="True")

    world.see_output("one", of="uid-n-a")

    assert world.summary()["outputs"] == {"configmaps": {"total": 1}}


def test_failing_inputs_are_counted_and_the_first_are_named(world: Mapped):
    for name in "cdefg":
        world.see(PODS, name, labels=WEB)
    for name in "gfedcb":
        world.report(f"uid-n-{name}", Fault.TIMED_OUT, message="it hangs")

    failing = world.failing()

    assert failing["count"] == 6
    assert failing["inputs"] == [
        {"resource": "pods", "namespace": "n", "name": name, "mapKey": f"uid-n-{name}", "reason": "TimedOut", "message": "it hangs"}
        for name in "bcdef"
    ]


def test_input_that_fails_or_recovers_marks_the_parent_later(world: Mapped):
    for fault in (Fault.TIMED_OUT, None):
        world.report("uid-n-a", fault)

        assert world.marked_later() == {"p/"}


def test_input_that_goes_on_failing_the_same_way_does_not_mark_the_parent(world: Mapped):
    world.report("uid-n-b")
    world.report("uid-n-a", Fault.TIMED_OUT, message="it hangs")
    world.marked_later()

    world.report("uid-n-a", Fault.TIMED_OUT, message="it hangs")

    assert world.marked_later() == set()


def test_input_that_holds_what_another_one_needs_fails_with_it(world: Mapped):
    world.see_output("out", of="uid-n-a")

    world.report("uid-n-b", Fault.NAME_TAKEN, message="taken", rivals=("uid-n-a",))

    failing = world.failing()
    assert failing["count"] == 2
    assert [(each["name"], each["reason"]) for each in failing["inputs"]] == [("a", "NameTaken"), ("b", "NameTaken")]  # type: ignore[union-attr, index, call-overload]


def test_input_that_is_gone_fails_no_longer(world: Mapped):
    gone = world.see(PODS, "a", labels=WEB)
    world.report("uid-n-a", Fault.TIMED_OUT)

    world.lose(PODS, gone)

    assert world.failing()["count"] == 0


def test_input_that_is_gone_before_its_sync_has_failed_does_not_fail(world: Mapped):
    world.lose(PODS, world.see(PODS, "a", labels=WEB))

    world.report("uid-n-a", Fault.TIMED_OUT)

    assert (world.failing()["count"], world.stats.failing) == (0, {})


def test_all_inputs_are_pending_after_a_start_until_each_was_synced():
    world = Mapped()
    world.see_parent(match=WEB)
    for name in ("a", "b"):
        world.see(PODS, name, labels=WEB)
    world.start()

    pending = [world.summary()["pending"]]
    for part in ("uid-n-a", "uid-n-b"):
        world.report(part)
        pending.append(world.summary()["pending"])

    assert pending == [2, 1, 0]


def test_input_that_comes_later_is_not_pending(world: Mapped):
    world.report("uid-n-a")
    before = world.summary()["pending"]

    world.see(PODS, "c", labels=WEB)

    assert world.summary()["pending"] == before


def test_part_itself_has_no_summary(world: Mapped):
    assert world.routing.observe(world.key("uid-n-a")).summary is None


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("Ready", "ready"),
        ("ReadyToUse", "readyToUse"),
        ("PodScheduled", "podScheduled"),
        ("PIDPressure", "pidPressure"),
        ("example.com/Good", "exampleComGood"),
        ("", ""),
    ],
)
def test_condition_types_are_spelled_in_lower_camel_case(name: str, spelled: str):
    assert lower_camel(name) == spelled


# -- whether it can be served ------------------------------------------------------------------------------------------


def test_inputs_and_outputs_that_are_not_served_are_waited_for():
    controller = Mapped().controller

    assert instance_of(controller, {HELLOS.id: HELLOS}) == Waiting((CONFIGMAPS.id, PODS.id))


def test_cluster_scoped_input_of_a_namespaced_parent_is_refused():
    controller = parse_map(map_spec(inputs=(NODES,)))

    found = instance_of(controller, {each.id: each for each in (HELLOS, NODES, CONFIGMAPS)})

    assert found == ClusterScopedInput(NODES.id, HELLOS.id)
    assert "v1/nodes is cluster-scoped" in str(found)


def test_parents_without_a_status_are_refused():
    controller = parse_map(map_spec())
    bare = ResourceInfo(api_version=HELLOS.api_version, resource=HELLOS.resource, kind=HELLOS.kind, namespaced=True)

    assert instance_of(controller, {each.id: each for each in (bare, PODS, CONFIGMAPS)}) == NoStatus(HELLOS.id)


# -- counts and recounts -----------------------------------------------------------------------------------------------

_NAMES = st.sampled_from("abc")
_LABELS = st.sampled_from([{}, WEB, {"app": "db"}])


class Counting(RuleBasedStateMachine):
    """Whatever happens, what was counted along the way is what a recount finds."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Mapped(inputs=(CONFIGMAPS,))
        self.world.start()

    @rule(name=_NAMES, match=st.sampled_from([None, WEB]), uid=st.sampled_from(["", "other"]))
    def see_parent(self, name: str, match: dict[str, str] | None, uid: str) -> None:
        self.world.see_parent(f"p{name}", match=match, **({"uid": uid + name} if uid else {}))

    @rule(name=_NAMES, labels=_LABELS, uid=st.sampled_from(["u1", "u2"]), is_deleting=st.booleans())
    def see_input(self, name: str, labels: dict[str, str], uid: str, *, is_deleting: bool) -> None:
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_deleting else {}
        self.world.see(CONFIGMAPS, name, labels=labels, uid=uid + name, **gone)

    @rule(name=_NAMES, of=_NAMES, parent=_NAMES, ready=st.sampled_from(["", "True", "False"]), labels=_LABELS)
    def see_output(self, name: str, of: str, parent: str, ready: str, labels: dict[str, str]) -> None:
        self.world.see_output(name, of=f"u1{of}", parent=f"p{parent}", ready=ready, labels=labels)

    @rule(name=_NAMES, resource=st.sampled_from([HELLOS, CONFIGMAPS]))
    def lose(self, name: str, resource: ResourceInfo) -> None:
        key = ("n", f"p{name}" if resource is HELLOS else name)
        found = self.world.routing.caches.lookup(WatchId(resource.id), key)
        if found is not None:
            self.world.lose(resource, found)

    @invariant()
    def counts_are_those_of_a_recount(self) -> None:
        [parts] = [each for each in self.world.instance.rules if isinstance(each, Parts)]
        for key, counts in parts.counts.items():
            parent = self.world.routing.caches.lookup(parts.parents.watch.id, key)
            assert parent is not None
            assert _outline(counts) == _outline(parts.counted(parent, self.world.routing.caches))


def _outline(counts: PartCounts) -> JsonObject:
    return {
        "inputs": sorted(counts.inputs),
        "totals": [*counts.input_totals],
        "outputs": sorted(f"{place.key} {output.part}" for place, output in counts.outputs.items()),
        "places": {part: sorted(str(place.key) for place in places) for part, places in sorted(counts.places.items())},  # type: ignore[dict-item]
        "counted": [each.shown() for each in counts.output_counts],
    }


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
