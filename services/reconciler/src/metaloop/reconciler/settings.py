"""The frozen settings this service reads from its environment, one documented field each."""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from metaloop.common.settings import FieldManagerSettings, KubeSettings, NatsSettings, ServiceSettings
from metaloop.reconciler.core.children.deletion_guard import DeletionLimits

DYNAMIC_APPLY: Final = "dynamic-apply"
SERVER_SIDE_APPLY: Final = "server-side-apply"
ApplyStrategyName: TypeAlias = Literal["dynamic-apply", "server-side-apply"]


class Settings(ServiceSettings, NatsSettings, KubeSettings, FieldManagerSettings):
    """What can be set; each field is the environment variable METALOOP_<NAME>."""

    port: int = Field(default=8082, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    gateway_url: str = Field(default="http://127.0.0.1:8083", description="Where the hook gateway answers, scheme and port included.")
    gateway_token: str = Field(default="", repr=False, description="The bearer token that the gateway wants to see; empty for none.")
    gateway_ca_file: str = Field(
        default="", description="Who signs the gateway's certificate (PEM), where it is called by https; empty: the system's authorities."
    )
    gateway_client_cert_file: str = Field(default="", description="The certificate (PEM) to show a gateway that asks for one.")
    gateway_client_key_file: str = Field(default="", description="The private key of that certificate, if it is in a file of its own.")
    active_jobs: int = Field(
        default=8,
        gt=0,
        description="Parents that use the CPU or the API server at once. More would only queue up in this process and in the API server: "
        "a fresh parent behind a backlog waits as long as they take.",
    )
    waiting_jobs: int = Field(
        default=256, gt=0, description="Parents in all, most of which wait for a webhook: the bound on calls in flight, and on memory."
    )
    apply_strategy: ApplyStrategyName = Field(
        default=DYNAMIC_APPLY,
        description="How children are written, where the annotation metaloop.dev/apply-strategy on a controller doesn't say otherwise.",
    )
    child_writes: int = Field(
        default=8, gt=0, description="Children of one parent that are written at once: fast, and fair to the API server's other clients."
    )
    guard_delete_share: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Which share of a parent's children one answer may delete unconfirmed; 1: all of them. "
        "The annotation metaloop.dev/max-delete-share on a controller says otherwise for its parents.",
    )
    guard_delete_min: int = Field(
        default=5, ge=1, description="A parent with fewer children than this may lose any number of them, whatever the share."
    )
    guard_emptied_parents: int = Field(
        default=0,
        ge=0,
        description="How many parents of one controller may lose all their children within a minute, as each reconciler counts; 0: any number.",
    )

    @property
    def deletion_limits(self) -> DeletionLimits:
        """How much an answer may delete unconfirmed."""
        return DeletionLimits(share=self.guard_delete_share, min_children=self.guard_delete_min, emptied_parents=self.guard_emptied_parents)
