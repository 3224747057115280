"""The frozen settings this service reads from its environment, one documented field each."""

from pydantic import Field

from metaloop.common.settings import KubeSettings, NatsSettings, ServiceSettings


class Settings(ServiceSettings, NatsSettings, KubeSettings):
    """What can be set; each field is the environment variable METALOOP_<NAME>."""

    port: int = Field(default=8082, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    gateway_url: str = Field(default="http://127.0.0.1:8083", description="Where the hook gateway answers, scheme and port included.")
    gateway_token: str = Field(default="", repr=False, description="The bearer token that the gateway wants to see; empty for none.")
    active_jobs: int = Field(
        default=16, gt=0, description="Parents that use the CPU or the API server at once. More would only queue up inside of this process."
    )
    waiting_jobs: int = Field(
        default=256, gt=0, description="Parents in all, most of which wait for a webhook: the bound on calls in flight, and on memory."
    )
    child_writes: int = Field(
        default=8, gt=0, description="Children of one parent that are written at once: fast, and fair to the API server's other clients."
    )
