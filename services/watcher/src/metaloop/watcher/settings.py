"""The settings that this service reads from its environment."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from metaloop.common.errors import InvalidSpec
from metaloop.common.objects.selector import parse_selector_text
from metaloop.common.settings import FieldManagerSettings, KubeSettings, Listener, NatsSettings, ServiceSettings
from metaloop.watcher.core.election import SHORTEST_SECONDS
from metaloop.watcher.core.shard import Shard, Share

_NAMESPACE_OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class WatcherSettings(ServiceSettings, NatsSettings, KubeSettings, FieldManagerSettings):
    """The settings. Each field is the environment variable METALOOP_<NAME>."""

    port: int = Field(default=8081, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    debug_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="The port of the read-only views /debug/queue, leases, cache, subscriptions, controllers and explain; 0: none.",
    )
    debug_host: str = Field(default="127.0.0.1", description="The address of the views. Any other than loopback needs a token.")
    debug_token: str = Field(
        default="",
        repr=False,
        description="Whoever reads the views has to send it, as X-Metaloop-Debug-Token; empty for everybody on this machine.",
    )
    shard: str = Field(
        default="0/1",
        pattern=r"^\d+/[1-9]\d*$",
        description="Which of how many shards of the controllers this watcher serves, counted from 0.",
    )
    target_label_selector: str = Field(
        default="", description="Serve only controllers whose labels match; kubectl's text form; empty: all."
    )
    namespaces: str = Field(
        default="",
        pattern=r"^([a-z0-9-]+(,[a-z0-9-]+)*)?$",
        description="Serve only the parents in these namespaces, separated by commas, and watch nothing outside of them; empty: all. "
        "Of the cluster as a whole, only controllers and CustomResourceDefinitions are read then.",
    )
    discovery_interval_seconds: float = Field(
        default=30.0,
        gt=0,
        description="How often to ask what the API server serves. What CRDs and APIServices add is known at once, since they are watched.",
    )
    watch_inactivity_seconds: float = Field(
        default=70.0, gt=0, description="A watch that is silent for so long, without even a bookmark (one a minute), is opened again."
    )
    read_your_writes_seconds: float = Field(
        default=2.0, ge=0, description="How long a parent waits, at most, until the cache has seen what its last sync wrote."
    )
    related_grace_seconds: float = Field(
        default=60.0,
        ge=0,
        description="How long a watch of related objects goes on without subscribers: a parent may subscribe again after the next answer of its hook.",
    )

    controller_status_seconds: float = Field(
        default=5.0,
        gt=0,
        description="How rarely the status of a controller is written: so long after it was created or edited, and between two changes of its "
        "conditions. Its finalizer follows after twice as long; mere counts, and parents that were not synced since a start, after six times.",
    )

    controller_jobs: int = Field(
        default=192,
        gt=0,
        description="How many jobs one controller may have in flight per reconciler: three quarters of its WAITING_JOBS, "
        "so that a controller whose hook hangs leaves room to others.",
    )

    leader_election: bool = Field(
        default=False,
        description="Whether several watchers may run for this shard: one leads, by a Lease; the others keep their caches warm.",
    )
    leader_lease_seconds: int = Field(
        default=15,
        ge=SHORTEST_SECONDS,
        description="After so long without a sign of life of the leader, another leads. The leader itself gives up after two thirds of it, "
        "and two seconds before its end: below 6, an API server that is slow for a moment costs it the Lease.",
    )
    leader_namespace: str = Field(default="", description="The namespace of the Lease; empty: the pod's own, or default outside of a pod.")

    @property
    def lease_namespace(self) -> str:
        """The namespace of the Lease."""
        if self.leader_namespace:
            return self.leader_namespace
        return _NAMESPACE_OF_POD.read_text().strip() if _NAMESPACE_OF_POD.exists() else "default"

    @property
    def watched_namespaces(self) -> tuple[str, ...]:
        """The namespaces that are watched, each once; empty: all."""
        return tuple(dict.fromkeys(filter(None, self.namespaces.split(","))))

    @property
    def share(self) -> Share:
        """The controllers that this watcher serves."""
        index, _, count = self.shard.partition("/")
        return Share(shard=Shard(int(index), int(count)), target=parse_selector_text(self.target_label_selector))

    @property
    def debug_listener(self) -> Listener:
        """Where the views are served."""
        return Listener(host=self.debug_host, port=self.debug_port)

    @model_validator(mode="after")
    def _views_are_guarded(self) -> Self:
        if self.debug_port and not self.debug_token and self.debug_host not in _LOOPBACK:
            raise ValueError(f"debug views on {self.debug_host} show names of objects to everybody: set METALOOP_DEBUG_TOKEN")
        return self

    @field_validator("shard")
    @classmethod
    def _is_one_of_them(cls, text: str) -> str:
        index, _, count = text.partition("/")
        if int(index) >= int(count):
            raise ValueError(f"shards are counted from 0: there is no shard {index} of {count}")
        return text

    @field_validator("target_label_selector")
    @classmethod
    def _is_selector(cls, text: str) -> str:
        try:
            parse_selector_text(text)
        except InvalidSpec as problem:
            raise ValueError(str(problem)) from problem
        return text
