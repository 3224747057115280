"""Keys of jobs, as Hypothesis makes them."""

from hypothesis import strategies as st

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId

names = st.text(min_size=1, max_size=30)
keys = st.builds(
    JobKey,
    st.builds(ControllerId, st.sampled_from(["CompositeController", "DecoratorController"]), names),
    st.builds(ResourceId, st.sampled_from(["v1", "apps/v1", "ex.io/v1beta1"]), names),
    st.text(max_size=20),
    names,
    st.just("") | names,
)
