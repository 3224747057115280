"""When a parent of the demo counts as converged."""

import pytest

from metaloop.devkit.demo.tales.hellos import Greeting, Hello, Hellos


def hello(*texts: str, who: str = "World", counted: int | None = None) -> Hello:
    greetings = tuple(Greeting(name=f"child-{number}", uid=str(number), text=text) for number, text in enumerate(texts))
    return Hello(name="hello", who=who, counted=len(texts) if counted is None else counted, greetings=greetings)


RIGHT = ("Hello, World!", "Bonjour, World!", "Guten Tag, World!")


def test_a_parent_with_its_three_right_children_counted_is_converged() -> None:
    assert hello(*RIGHT).is_converged


@pytest.mark.parametrize(
    "unfinished",
    [hello(), hello(*RIGHT[:2]), hello(*RIGHT, counted=2), hello(*RIGHT, who="Moon"), hello(*RIGHT, "Hallo, World!")],
    ids=["no children", "one missing", "not counted yet", "greeting somebody else", "one too many"],
)
def test_a_parent_on_its_way_is_not(unfinished: Hello) -> None:
    assert not unfinished.is_converged


def test_a_sight_is_converged_when_all_its_parents_are() -> None:
    sight = Hellos(hellos=(hello(*RIGHT), hello(*RIGHT[:1])), children=4)

    assert (sight.converged, sight.is_converged) == (1, False)
