"""Defines the settings that the service reads from its environment."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode

from metaloop.common.settings import KubeSettings, Listener, ServiceSettings
from metaloop.hookgateway.core.address import AddressPolicy, Network

Networks = Annotated[tuple[Network, ...], NoDecode]

METADATA_NETWORKS = "169.254.0.0/16,fe80::/10,fd00:ec2::254/128"
"""Where clouds serve a machine's credentials to any process on it: link-local addresses, and EC2's one for IPv6."""


class Settings(ServiceSettings, KubeSettings):
    """Each field is the environment variable METALOOP_<NAME>."""

    port: int = Field(default=8083, ge=0, le=65535, description="The port for calls, probes and metrics; 0 takes a free one.")
    reuse_port: bool = Field(
        default=False, description="Whether several gateway processes share the port. Off, so that a second one started by mistake fails."
    )

    gateway_token: str = Field(default="", repr=False, description="The bearer token that reconcilers must send; empty admits everybody.")
    gateway_other_token: str = Field(
        default="", repr=False, description="A second token that is accepted as well, while the first is being replaced; empty: none."
    )
    gateway_tls_cert_file: str = Field(default="", description="The certificate chain (PEM) to serve HTTPS with; empty serves HTTP.")
    gateway_tls_key_file: str = Field(default="", description="The private key of that certificate.")
    gateway_client_ca_file: str = Field(
        default="", description="The CA file (PEM) for reconcilers' client certificates; empty requires none."
    )

    allowed_cidrs: Networks = Field(
        default=(), description="Comma-separated networks in which webhooks are allowed; empty for all. Denied networks stay denied."
    )
    denied_cidrs: Networks = Field(
        default=tuple(ip_network(text) for text in METADATA_NETWORKS.split(",")),
        description="Comma-separated networks in which webhooks are denied. By default those of the metadata services.",
    )
    proxy_from_environment: bool = Field(
        default=False,
        description="Whether HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply. Off, since a hook inside the cluster needs no proxy.",
    )

    max_request_bytes: int = Field(
        default=256 * 2**20, gt=0, description="The largest request body in bytes: a parent with tens of thousands of children."
    )
    max_response_bytes: int = Field(
        default=128 * 2**20,
        gt=0,
        description="The largest answer of a webhook in bytes, compressed or not. Half of the largest request: each child of an answer comes "
        "back in the next request, with the record of what was applied to it, which is as large.",
    )
    max_unfinished_bytes: int = Field(
        default=256 * 2**20, gt=0, description="The bytes of all answers that are being received, which bounds the memory."
    )
    etag_cache_bytes: int = Field(default=64 * 2**20, ge=0, description="The bytes of cached answers, for webhooks with etag enabled.")

    calls_per_controller: int = Field(
        default=512,
        gt=0,
        description="Calls in flight for one controller; more are put off, so that no controller takes all the memory.",
    )
    calls_put_off_seconds: float = Field(default=0.5, gt=0, description="How long a call above that limit is put off.")
    breaker_threshold: int = Field(default=5, gt=0, description="Calls in a row without an answer that open an endpoint's circuit.")
    breaker_shortest_seconds: float = Field(
        default=1.0, gt=0, description="How long a circuit stays open the first time; twice as long each further time."
    )
    breaker_longest_seconds: float = Field(
        default=10.0, gt=0, description="How long a circuit stays open at most: a webhook that recovers waits no longer for its next call."
    )
    keepalive_seconds: float = Field(
        default=15.0, gt=0, description="How long an idle connection is kept. Names are resolved again for each new connection."
    )
    idle_endpoint_seconds: float = Field(
        default=900.0, gt=0, description="After how long without a call the connections, circuit and metrics of an endpoint are dropped."
    )

    @field_validator("allowed_cidrs", "denied_cidrs", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(ip_network(text.strip(), strict=False) for text in value.split(",") if text.strip())

    @property
    def accepted_tokens(self) -> tuple[str, ...]:
        """The tokens of which a reconciler must send one; empty: everybody is admitted."""
        return tuple(filter(None, (self.gateway_token, self.gateway_other_token)))

    @property
    def listener(self) -> Listener:
        """Where and how the gateway listens."""
        return Listener(
            host=self.host,
            port=self.port,
            reuse_port=self.reuse_port,
            certificate_file=self.gateway_tls_cert_file,
            key_file=self.gateway_tls_key_file,
            client_ca_file=self.gateway_client_ca_file,
        )

    @property
    def address_policy(self) -> AddressPolicy:
        """Which addresses webhooks may have."""
        return AddressPolicy(allowed=self.allowed_cidrs, denied=self.denied_cidrs)
