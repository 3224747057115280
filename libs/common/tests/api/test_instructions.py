"""Metaloop's own annotations on a controller."""

import pytest

from metaloop.common.api import ON_DELETION_ANNOTATION
from metaloop.common.api.instructions import instructions, is_paused, max_concurrent
from metaloop.common.json import JsonObject


@pytest.mark.parametrize(("told", "expected"), [("5", 5), ("1", 1), ("0", None), ("-1", None), ("many", None), ("1.5", None), ("", None)])
def test_positive_number_limits_concurrent_syncs(told: str, expected: int | None):
    assert max_concurrent({"metadata": {"annotations": {"metaloop.dev/max-concurrent": told}}}) == expected


def test_without_annotation_concurrency_is_unlimited():
    assert max_concurrent({}) is None


@pytest.mark.parametrize(("told", "expected"), [("true", True), ("True", False), ("yes", False), ("", False)])
def test_only_the_word_true_pauses(told: str, *, expected: bool):
    assert is_paused({"metadata": {"annotations": {"metaloop.dev/paused": told}}}) is expected


def test_nothing_is_paused_without_the_annotation():
    assert not is_paused({})


def test_instructions_are_our_annotations_that_concern_syncs():
    annotations: JsonObject = {
        "metaloop.dev/paused": "true",
        "metaloop.dev/apply-strategy": "server-side-apply",
        ON_DELETION_ANNOTATION: "release",
        "example.com/other": "x",
    }

    assert instructions({"metadata": {"annotations": annotations}}) == {
        "metaloop.dev/paused": "true",
        "metaloop.dev/apply-strategy": "server-side-apply",
    }
