"""Properties of label selectors: both forms mean the same, and operators are each other's complements."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject
from metaloop.common.objects.selector import Requirement, Selector, parse_selector, parse_selector_text

keys = st.sampled_from(["app", "tier", "example.com/team", "a_b.c-d"])
values = st.sampled_from(["", "a", "b", "10", "A.b_c-9"])
labels = st.dictionaries(keys, values)
some_values = st.lists(values, min_size=1, max_size=3, unique=True).map(tuple)
requirements = st.builds(Requirement, keys, st.sampled_from(["In", "NotIn"]), some_values) | st.builds(
    Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])
)
selectors = st.lists(requirements, max_size=4).map(lambda listed: Selector(tuple(listed)))


@given(selectors)
def test_text_of_a_selector_is_read_as_the_same_selector(selector: Selector):
    assert parse_selector_text(str(selector)) == selector


@given(selectors)
def test_object_form_is_read_as_the_same_selector(selector: Selector):
    expressions: list[JsonObject] = [
        {"key": each.key, "operator": each.operator, "values": [*each.values]} for each in selector.requirements
    ]

    assert parse_selector({"matchExpressions": [*expressions]}, "selector") == selector


@given(selectors, labels)
def test_selector_matches_what_all_its_requirements_match(selector: Selector, given_labels: dict[str, str]):
    alone = [Selector((each,)).matches(given_labels) for each in selector.requirements]

    assert selector.matches(given_labels) == all(alone)


@given(keys, some_values, labels)
def test_operators_are_complements_of_each_other(key: str, listed: tuple[str, ...], given_labels: dict[str, str]):
    matches = {
        operator: Requirement(key, operator, listed if operator.endswith("In") else ()).matches(given_labels)
        for operator in ("In", "NotIn", "Exists", "DoesNotExist")
    }

    assert matches["In"] != matches["NotIn"]
    assert matches["Exists"] != matches["DoesNotExist"]
    assert not matches["In"] or matches["Exists"]


@given(keys, st.integers(-99, 99), st.integers(-99, 99))
def test_comparison_is_of_numbers_and_not_of_text(key: str, label: int, bound: int):
    given_labels = {key: str(label)}

    assert parse_selector_text(f"{key}>{bound}").matches(given_labels) == (label > bound)
    assert parse_selector_text(f"{key}<{bound}").matches(given_labels) == (label < bound)


@given(selectors, st.sampled_from([" ", "  ", "\t"]))
def test_space_between_terms_means_nothing(selector: Selector, space: str):
    spaced = str(selector).replace(",", f"{space},{space}")

    assert parse_selector_text(f"{space}{spaced}{space}") == selector
