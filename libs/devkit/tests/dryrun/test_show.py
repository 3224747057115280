"""How the result of a dry run is shown, as text and as JSON."""

import io
from dataclasses import replace

import pytest
from memory_cluster import CONFIG_MAPS, THINGS
from rich.console import Console

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.testing.builders import job_key, sync_report
from metaloop.devkit.dryrun.driver import DryRun, PlannedWrite
from metaloop.devkit.dryrun.show import as_json, difference_of, print_text

REPORT = sync_report(job_key(), "plan")


def an_object(*, metadata: JsonObject | None = None, **parts: object) -> JsonObject:
    """A ConfigMap as the API server stores it."""
    kept: JsonObject = {"name": "a", "uid": "u", "resourceVersion": "7", "generation": 1, "managedFields": [], **(metadata or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, **parts}  # type: ignore[dict-item]


def a_write(verb: str = "update", *, before: JsonObject | None = None, after: JsonObject | None = None) -> PlannedWrite:
    """A write to a ConfigMap."""
    return PlannedWrite(verb=verb, info=CONFIG_MAPS, name="ConfigMap default/a", reason="the data differ", before=before, after=after)


def text_of(result: DryRun) -> str:
    """The printed text."""
    out = io.StringIO()
    print_text(result, title="CompositeController/web: Thing default/p", console=Console(file=out, width=120))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


# -- differences -------------------------------------------------------------------------------------------------------


def test_update_shows_the_lines_that_change_with_those_around_them() -> None:
    before = an_object(data={"a": "1", "b": "1"})

    lines = list(difference_of(a_write(before=before, after={**before, "data": {"a": "2", "b": "1"}})))

    assert lines[0].startswith("@@")
    assert [line for line in lines if line[0] in "+-"] == ["-  a: '1'", "+  a: '2'"]
    assert "   b: '1'" in lines


def test_created_object_is_shown_whole() -> None:
    lines = list(difference_of(a_write("create", after=an_object(data={"a": "1"}))))

    assert lines == ["+apiVersion: v1", "+data:", "+  a: '1'", "+kind: ConfigMap", "+metadata:", "+  name: a"]


def test_deleted_object_is_not_shown() -> None:
    assert list(difference_of(a_write("delete", before=an_object(data={"a": "1"})))) == []


@pytest.mark.parametrize("field", ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"])
def test_what_only_the_api_server_keeps_is_no_difference(field: str) -> None:
    before, after = an_object(metadata={field: "before"}), an_object(metadata={field: "after"})

    assert list(difference_of(a_write(before=before, after=after))) == []


def test_what_we_only_remember_is_no_difference() -> None:
    before = an_object(metadata={"annotations": {LAST_APPLIED_ANNOTATION: "{}", "kept": "yes"}})
    after = an_object(metadata={"annotations": {LAST_APPLIED_ANNOTATION: '{"more":1}', "kept": "yes"}})

    assert list(difference_of(a_write(before=before, after=after))) == []


def test_annotations_that_are_only_ours_to_remember_are_not_shown() -> None:
    after = an_object(metadata={"annotations": {LAST_APPLIED_ANNOTATION: "{}"}})

    assert list(difference_of(a_write(before=an_object(), after=after))) == []


def test_write_of_a_status_shows_the_status_alone() -> None:
    write = a_write(before=an_object(data={"a": "1"}), after=an_object(data={"a": "2"}, status={"phase": "Well"}))

    assert list(difference_of(replace(write, subresource="status"))) == ["@@ -1 +1 @@", "-{}", "+phase: Well"]


def test_other_writes_do_not_show_the_status() -> None:
    write = a_write(before=an_object(status={"phase": "Ill"}), after=an_object(status={"phase": "Well"}))

    assert list(difference_of(write)) == []


# -- text --------------------------------------------------------------------------------------------------------------


def test_writes_are_numbered_with_their_signs_and_reasons() -> None:
    writes = [
        a_write("delete", before=an_object()),
        a_write("create", after=an_object()),
        a_write("recreate", before=an_object(), after=an_object(data={"a": "1"})),
        replace(a_write(before=an_object(), after=an_object(status={"a": 1})), info=THINGS, name="Thing default/p", subresource="status"),
    ]

    lines = text_of(DryRun(writes=writes, report=REPORT)).splitlines()

    assert lines[0] == "CompositeController/web: Thing default/p"
    assert [line for line in lines if line[:1] in "-+±~" and line[2:4] in {"1.", "2.", "3.", "4."}] == [
        "- 1. delete ConfigMap default/a: the data differ",
        "+ 2. create ConfigMap default/a: the data differ",
        "± 3. recreate ConfigMap default/a: the data differ",
        "~ 4. update Thing default/p (status): the data differ",
    ]


def test_waves_have_headings_and_objects_that_stay_have_signs_of_their_own() -> None:
    writes = [
        replace(a_write("create", after=an_object()), wave="wave 0"),
        replace(a_write("keep"), wave="wave 0", reason="it is as desired"),
        replace(a_write("wait"), wave="wave 1", reason="replicas: 0/1"),
        replace(a_write("refuse", before=an_object()), wave="wave 1", reason="it is another's"),
        replace(a_write("orphan", before=an_object()), wave="deletion wave 0", reason="its delete policy is Orphan"),
    ]

    lines = text_of(DryRun(writes=writes, report=REPORT)).splitlines()

    assert [line for line in lines[1:] if line[:1] != "+" or line[2:4] == "1."] == [
        "wave 0:",
        "+ 1. create ConfigMap default/a: the data differ",
        "= 2. keep ConfigMap default/a: it is as desired",
        "wave 1:",
        "… 3. wait ConfigMap default/a: replicas: 0/1",
        "! 4. refuse ConfigMap default/a: it is another's",
        "deletion wave 0:",
        "= 5. orphan ConfigMap default/a: its delete policy is Orphan",
        "1 writes would be done, and none was.",
    ]


def test_obstacles_are_told_and_what_only_stays_is_no_write() -> None:
    result = DryRun(writes=[a_write("keep")], obstacles=["the component is suspended"], report=REPORT)

    assert text_of(result).splitlines()[2:] == [
        "! nothing of this happens now: the component is suspended",
        "Nothing to do: all is as desired.",
    ]


def test_events_stand_below_the_writes() -> None:
    text = text_of(DryRun(writes=[a_write("delete")], events=["Warning SyncError on Thing default/p: it broke"], report=REPORT))

    assert text.index("delete ConfigMap") < text.index("! event: Warning SyncError on Thing default/p: it broke")


SUMMARIES: dict[str, tuple[DryRun, str]] = {
    # what it shows: (the result, its last line)
    "nothing to do": (DryRun(report=REPORT), "Nothing to do: all is as desired."),
    "writes": (DryRun(writes=[a_write("delete")], report=REPORT), "1 writes would be done, and none was."),
    "a resync": (
        DryRun(writes=[a_write("delete")], report=replace(REPORT, resync_after_seconds=2.5)),
        "1 writes would be done, and none was; it would be looked at again after 2.5 s.",
    ),
    "a failure": (
        DryRun(
            writes=[a_write("delete")], report=replace(REPORT, result="retry", fault=Fault.INVALID_ANSWER, message="in the hook's answer")
        ),
        "The sync would end with InvalidAnswer: in the hook's answer",
    ),
}


@pytest.mark.parametrize("case", SUMMARIES.values(), ids=SUMMARIES.keys())
def test_last_line_sums_up(case: tuple[DryRun, str]) -> None:
    result, summary = case

    assert text_of(result).splitlines()[-1] == summary


def test_text_that_looks_like_markup_is_printed_as_it_stands() -> None:
    assert "! event: [red]not red[/red]" in text_of(DryRun(events=["[red]not red[/red]"], report=REPORT))


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_json_has_title_writes_events_and_outcome() -> None:
    before, after = an_object(data={"a": "1"}), an_object(data={"a": "2"})
    result = DryRun(writes=[a_write(before=before, after=after)], events=["an event"], report=replace(REPORT, resync_after_seconds=5))

    told = as_json(result, title={"controller": "web"})

    assert told == {
        "controller": "web",
        "writes": [
            {
                "verb": "update",
                "wave": "",
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "object": "ConfigMap default/a",
                "subresource": "",
                "reason": "the data differ",
                "before": before,
                "after": after,
                "diff": [*difference_of(result.writes[0])],
            }
        ],
        "obstacles": [],
        "events": ["an event"],
        "outcome": {"result": "done", "reason": "", "message": "", "resyncAfterSeconds": 5},
    }


def test_dry_run_without_a_report_has_no_outcome() -> None:
    assert as_json(DryRun(), title={})["outcome"] == {}
