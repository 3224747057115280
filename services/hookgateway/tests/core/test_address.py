"""Which addresses webhooks may have."""

from ipaddress import ip_network

import pytest

from metaloop.hookgateway.core.address import AddressPolicy, Network
from metaloop.hookgateway.settings import Settings

BY_DEFAULT = Settings().address_policy


def networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
    ],
)
def test_metadata_services_are_denied_by_default_in_every_notation(address: str):
    assert not BY_DEFAULT.permits(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.1", "127.0.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "::1", "64:ff9b::8.8.8.8"]
)
def test_other_addresses_are_allowed_by_default(address: str):
    assert BY_DEFAULT.permits(address)


@pytest.mark.parametrize(("address", "permitted"), [("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("11.0.0.1", False), ("fd00::1", False)])
def test_allow_list_allows_nothing_else(address: str, *, permitted: bool):
    policy = AddressPolicy(allowed=networks("10.0.0.0/8"))

    assert policy.permits(address) is permitted


def test_denied_address_stays_denied_whatever_is_allowed():
    policy = AddressPolicy(allowed=networks("10.0.0.0/8"), denied=networks("10.1.0.0/16"))

    assert policy.permits("10.2.0.1")
    assert not policy.permits("10.1.0.1")


def test_networks_are_separated_by_commas():
    settings = Settings.model_validate({"allowed_cidrs": "10.0.0.0/8, fd00::/8", "denied_cidrs": ""})

    assert settings.allowed_cidrs == networks("10.0.0.0/8", "fd00::/8")
    assert settings.denied_cidrs == ()
