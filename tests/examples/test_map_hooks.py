"""The hooks of the examples of MapControllers: what each answers about one input."""

from datetime import UTC, datetime

import pytest

from .hooks import Json, hook_module, names

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
GROUP = "VolumeSnapshot.snapshot.storage.k8s.io/v1"


# -- configmap-transform -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "text"), [("upper", "FESTINA LENTE"), ("lower", "festina lente")])
def test_transform_answers_one_output_in_the_wanted_case(case: str, text: str) -> None:
    parent = {"metadata": {"name": "t"}, "spec": {"case": case}}
    source = {"metadata": {"name": "motto"}, "data": {"text": "Festina lente"}}

    answered = hook_module("configmap-transform").transform({"parent": parent, "input": source})

    assert names(answered["outputs"], "ConfigMap") == ["motto-t"]
    assert answered["outputs"][0]["data"] == {"text": text}


# -- snapshot-schedule -------------------------------------------------------------------------------------------------


def schedule(*ages: float, ttl: str = "150s") -> Json:
    """A request about a claim with snapshots of these ages: one each 60 s is wanted, and kept for `ttl`."""
    spec = {"snapshotInterval": "60s", "snapshotTTL": ttl}
    return {"parent": {"spec": spec}, "input": {"metadata": {"name": "data"}}, "outputs": {GROUP: dict(map(snapshot, ages))}}


def snapshot(age: float) -> tuple[str, Json]:
    """A snapshot by its name, which tells its age."""
    created = datetime.fromtimestamp(NOW - age, UTC).isoformat()
    return f"age-{age:g}", {"metadata": {"name": f"age-{age:g}", "creationTimestamp": created}}


def answered(*ages: float) -> tuple[list[str], float]:
    """The names of the snapshots that are desired, new ones as `new`, and when the hook wants to be called again."""
    answer = hook_module("snapshot-schedule").map_claim(schedule(*ages), now=NOW)
    listed = [each["metadata"]["name"] for each in answer["outputs"]]
    return [name if name.startswith("age") else "new" for name in listed], answer["resyncAfterSeconds"]


@pytest.mark.parametrize(
    ("ages", "desired", "again"),
    [
        ((), ["new"], 60),
        ((20,), ["age-20"], 40),
        ((70, 10), ["age-10", "age-70"], 50),
        ((60,), ["age-60", "new"], 60),
        ((160, 100, 40), ["age-100", "age-40"], 20),
        ((140, 80, 20), ["age-140", "age-20", "age-80"], 10),
    ],
    ids=["no snapshot yet", "not due", "not due again", "due", "one is expired", "one expires before the next is due"],
)
def test_snapshot_is_taken_when_it_is_due_and_let_go_when_it_expires(ages: tuple[float, ...], desired: list[str], again: float) -> None:
    assert answered(*ages) == (desired, pytest.approx(again))


def test_new_snapshot_that_expires_before_the_next_is_due_is_looked_at_then() -> None:
    answer = hook_module("snapshot-schedule").map_claim(schedule(ttl="20s"), now=NOW)

    assert answer["resyncAfterSeconds"] == pytest.approx(20)


def test_new_snapshot_is_of_the_claim() -> None:
    [new] = hook_module("snapshot-schedule").map_claim(schedule(), now=NOW)["outputs"]

    assert new["spec"] == {"source": {"persistentVolumeClaimName": "data"}}


@pytest.mark.parametrize(("ages", "kept", "again"), [((160, 100), ["age-100"], 50), ((160,), [], None)])
def test_snapshots_of_a_claim_that_is_gone_are_kept_until_they_expire(
    ages: tuple[float, ...], kept: list[str], again: float | None
) -> None:
    answer = hook_module("snapshot-schedule").tombstone(schedule(*ages), now=NOW)

    assert [each["metadata"]["name"] for each in answer["outputs"]] == kept
    assert answer.get("resyncAfterSeconds") == (pytest.approx(again) if again else None)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("6h", 21600), ("10d", 864000)])
def test_durations_are_read(text: str, seconds: float) -> None:
    assert hook_module("snapshot-schedule").seconds_of(text) == seconds
