"""What was observed, with one part of it changed."""

from dataclasses import fields

from worlds import CONFIG_MAPS, a_parent, config_map, group, observed

from metaloop.common.objects.selector import EVERYTHING
from metaloop.common.observation import Related
from metaloop.reconciler.core.model import Observed

SEEN = Observed(
    controller=observed().controller,
    info=observed().info,
    parent=a_parent(),
    groups=(group(CONFIG_MAPS, config_map("a")),),
    is_selected=False,
    selector=None,
    revisions=(config_map("revision"),),
    related=Related(fingerprint="made of"),
    managed={"uid-of-a": {}},
)


def test_the_same_parent_makes_no_other_observation():
    assert SEEN.with_parent(SEEN.parent) is SEEN


def test_another_parent_leaves_the_rest():
    other = a_parent(uid="uid-of-another")

    assert _changed(SEEN.with_parent(other)) == {"parent": other}


def test_selector_leaves_the_rest():
    assert _changed(SEEN.with_selector(EVERYTHING)) == {"selector": EVERYTHING}


def test_no_selector_again_makes_no_other_observation():
    assert SEEN.with_selector(None) is SEEN


def test_every_part_is_told_from_what_it_is_by_default():
    """Or the tests above would not notice that one was left behind."""
    bare = Observed(controller=SEEN.controller, info=SEEN.info, parent=SEEN.parent, groups=SEEN.groups)

    assert {field.name for field in fields(Observed)} - _changed(bare).keys() == {"controller", "info", "parent", "groups", "selector"}


def _changed(other: Observed) -> dict[str, object]:
    values = {field.name: getattr(other, field.name) for field in fields(Observed)}
    return {name: value for name, value in values.items() if value is not getattr(SEEN, name)}
