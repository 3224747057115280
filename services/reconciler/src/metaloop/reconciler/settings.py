"""The settings that the reconciler reads from its environment."""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from metaloop.common.settings import FieldManagerSettings, KubeSettings, NatsSettings, ServiceSettings
from metaloop.reconciler.core.children.deletion_guard import DEFAULT_LIMITS, DeletionLimits

DYNAMIC_APPLY: Final = "dynamic-apply"
SERVER_SIDE_APPLY: Final = "server-side-apply"
ApplyStrategyName: TypeAlias = Literal["dynamic-apply", "server-side-apply"]


class Settings(ServiceSettings, NatsSettings, KubeSettings, FieldManagerSettings):
    """The settings. Each field is the environment variable METALOOP_<NAME>."""

    port: int = Field(default=8082, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    gateway_url: str = Field(default="http://127.0.0.1:8083", description="The URL of the hook gateway, with scheme and port.")
    gateway_token: str = Field(default="", repr=False, description="The bearer token that the gateway requires; empty for none.")
    gateway_ca_file: str = Field(
        default="", description="The CA certificates (PEM) that verify a gateway called by https; empty: the system's."
    )
    gateway_client_cert_file: str = Field(default="", description="The certificate (PEM) to present to a gateway that requires one.")
    gateway_client_key_file: str = Field(default="", description="The private key of that certificate, if it is in another file.")
    gateway_connection_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a connection to the gateway is used. New ones are balanced again, so that replicas that were added get calls.",
    )
    active_jobs: int = Field(
        default=8,
        gt=0,
        description="Parents that use the CPU or the API server at once. More of them would only queue up in this process and in the "
        "API server, and a new parent behind a backlog would wait for them.",
    )
    waiting_jobs: int = Field(
        default=256,
        gt=0,
        description="All parents in progress, most of which wait for a webhook: the limit on calls in flight, and on memory.",
    )
    apply_strategy: ApplyStrategyName = Field(
        default=DYNAMIC_APPLY,
        description="How children are written, unless a controller's annotation metaloop.dev/apply-strategy says otherwise.",
    )
    child_writes: int = Field(
        default=8, gt=0, description="Concurrent writes to the children of one parent. Fewer are fairer to other clients of the API server."
    )
    guard_delete_share: float = Field(
        default=DEFAULT_LIMITS.share,
        ge=0,
        le=1,
        description="The share of a parent's children that one answer may delete unconfirmed; 1: all of them. "
        "A controller's annotation metaloop.dev/max-delete-share overrides it.",
    )
    guard_delete_min: int = Field(
        default=DEFAULT_LIMITS.min_children,
        ge=1,
        description="A parent with fewer children may lose any number of them, whatever the share.",
    )
    guard_emptied_parents: int = Field(
        default=DEFAULT_LIMITS.emptied_parents,
        ge=0,
        description="How many parents of one controller may lose all their children within a minute, as each reconciler counts them; 0: any number.",
    )

    @property
    def deletion_limits(self) -> DeletionLimits:
        """How much an answer may delete unconfirmed, in one value."""
        return DeletionLimits(share=self.guard_delete_share, min_children=self.guard_delete_min, emptied_parents=self.guard_emptied_parents)
