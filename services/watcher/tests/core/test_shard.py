"""Which controllers a watcher serves, where several share them."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.job import ControllerId
from metaloop.common.objects.selector import EVERYTHING, parse_selector_text
from metaloop.watcher.core.shard import Shard, Share

ids = st.builds(ControllerId, st.sampled_from(["CompositeController", "DecoratorController"]), st.text())


@given(ids, st.integers(1, 9))
def test_each_controller_is_in_exactly_one_shard(controller: ControllerId, count: int):
    assert sum(Shard(index, count).holds(controller) for index in range(count)) == 1


def test_shards_are_of_about_the_same_size():
    controllers = [ControllerId("CompositeController", f"controller-{number}") for number in range(1000)]

    sizes = [sum(Shard(index, 4).holds(controller) for controller in controllers) for index in range(4)]

    assert min(sizes) > 200


def test_a_share_holds_what_its_selector_matches():
    share = Share(shard=Shard(0, 1), target=parse_selector_text("team=blue"))

    assert share.holds(ControllerId("CompositeController", "a"), {"team": "blue"})
    assert not share.holds(ControllerId("CompositeController", "a"), {"team": "red"})


def test_without_selector_all_of_the_shard_is_ours():
    assert Share(shard=Shard(0, 1), target=EVERYTHING).holds(ControllerId("CompositeController", "a"), {})
