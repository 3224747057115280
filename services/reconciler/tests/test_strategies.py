"""How the apply strategy of a controller's children is chosen."""

from dataclasses import replace

import pytest
from builders import a_controller, observed
from known_schemas import GuessedSchemas

from metaloop.common.api.composite import parse_composite
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.children.server_side_apply import ServerSideApply
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.strategies import Strategies


def annotated(strategy: str) -> Observed:
    """A parent whose controller asks for a strategy."""
    raw = a_controller()
    annotations: JsonObject = {"metaloop.dev/apply-strategy": strategy} if strategy else {}
    raw["metadata"] = {**unstructured.metadata(raw), "annotations": annotations}
    return replace(observed(), controller=parse_composite(raw))


@pytest.mark.parametrize(
    ("setting", "annotation", "expected"),
    [
        ("dynamic-apply", "", DynamicApply),
        ("server-side-apply", "", ServerSideApply),
        ("dynamic-apply", "server-side-apply", ServerSideApply),
        ("server-side-apply", "dynamic-apply", DynamicApply),
    ],
)
async def test_annotation_of_the_controller_counts_for_more_than_the_setting(setting: str, annotation: str, expected: type):
    assert isinstance(await Strategies(schemas=GuessedSchemas(), default=setting).of(annotated(annotation)), expected)


async def test_strategy_that_there_is_not_is_the_controllers_fault():
    with pytest.raises(InvalidSpec, match="apply-strategy"):
        await Strategies(schemas=GuessedSchemas(), default="dynamic-apply").of(annotated("magic"))
