"""Parents with a finalize hook are deleted: their children go first, then our finalizer, then they."""

import time

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, delete_parents, following, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale


async def run(scale: Scale) -> list[Figure]:
    """500 x 1, deleted as fast as the API server takes it."""
    names = [f"p{index}" for index in range(scale.of(500))]
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        webhook = {"webhook": {"url": rig.hook.sync_url}}
        await rig.controller(hooks={"sync": webhook, "finalize": webhook})
        async with following(rig.cluster, is_settled(children=1)) as follower:
            await create_parents(rig.cluster, names, children=1)
            await follower.reach(len(names))
        await rig.quiet()
        await rig.hook.forget_calls()
        mark = rig.audit.mark()
        seconds = await _gone_after(rig, names)
        calls = len(await rig.hook.calls())
        writes = [request for request in rig.audit.ours_since(mark) if request.is_write and request.namespace == NAMESPACE]
    return [
        scale.judge(figures.FINALIZE, seconds),
        Figure(name="hook calls per deleted parent", value=calls / len(names)),
        Figure(name="API writes per deleted parent with a child", value=len(writes) / len(names)),
    ]


async def _gone_after(rig: Rig, names: list[str]) -> float:
    """Seconds from the first deletion to the end of the last parent."""
    async with following(rig.cluster, lambda _: True, of_the_gone=True) as follower:
        start = time.monotonic()
        await delete_parents(rig.cluster, names)
        return await follower.reach(len(names)) - start
