"""Builds complete values for tests, which state only what they are about."""

from collections.abc import Sequence

from metaloop.common.faults import Result
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedObservation
from metaloop.common.report import SyncReport, Write

SHARD = "0/1"
CHILDREN = ResourceId("v1", "configmaps")
PARENTS = ResourceInfo(api_version="example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)


def controller_id(name: str = "things") -> ControllerId:
    """A CompositeController."""
    return ControllerId("CompositeController", name)


def job_key(name: str = "parent", *, controller: str = "things", namespace: str = "default") -> JobKey:
    """The key of a parent of `controller`."""
    return JobKey(controller_id(controller), PARENTS.id, namespace, name)


def job(name: str = "parent", *, shard: str = SHARD) -> Job:
    """A job for the parent called `name`."""
    return Job(key=job_key(name), shard=shard, reason="a test")


def write(name: str = "child", *, version: int = 1) -> Write:
    """A write that left the child called `name` at a resourceVersion."""
    return Write(resource=CHILDREN, namespace="default", name=name, uid=f"uid-{name}", resource_version=str(version))


def sync_report(key: JobKey, lease: str, *, result: Result = "done", writes: Sequence[Write] = ()) -> SyncReport:
    """How the sync of `key` under `lease` ended; `dataclasses.replace` adds the rarer fields."""
    return SyncReport(key=key, lease=lease, result=result, writes=writes)


def cached_observation(parent: bytes = b'{"metadata":{"name":"parent"}}') -> CachedObservation:
    """A parent without children."""
    return CachedObservation(controller=b"{}", parent_resource=PARENTS, parent=parent, children=())
