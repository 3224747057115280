"""When a parent of the first example has converged."""

import pytest

from metaloop.devkit.demo.scenarios.hellos import Greeting, Hello, Hellos


def hello(*texts: str, who: str = "World", counted: int | None = None) -> Hello:
    greetings = tuple(Greeting(name=f"child-{number}", uid=str(number), text=text) for number, text in enumerate(texts))
    return Hello(name="hello", who=who, counted=len(texts) if counted is None else counted, greetings=greetings)


RIGHT = ("Hello, World!", "Bonjour, World!", "Guten Tag, World!")


def test_a_parent_with_three_right_children_in_its_status_has_converged() -> None:
    assert hello(*RIGHT).is_converged


@pytest.mark.parametrize(
    "unfinished",
    [hello(), hello(*RIGHT[:2]), hello(*RIGHT, counted=2), hello(*RIGHT, who="Moon"), hello(*RIGHT, "Hallo, World!")],
    ids=["no children", "one missing", "not counted yet", "greets somebody else", "one too many"],
)
def test_a_parent_with_anything_missing_or_wrong_has_not_converged(unfinished: Hello) -> None:
    assert not unfinished.is_converged


def test_a_snapshot_has_converged_when_all_its_parents_have() -> None:
    snapshot = Hellos(hellos=(hello(*RIGHT), hello(*RIGHT[:1])), children=4)

    assert (snapshot.converged, snapshot.is_converged) == (1, False)
