"""Which addresses webhooks may have: the operator's allow and deny lists, and the notations of an address."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_NAT64: Final = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Which addresses webhooks may have.

    A denied address is denied even if it is allowed as well. An empty allow list allows the rest.
    """

    allowed: tuple[Network, ...] = ()
    denied: tuple[Network, ...] = ()

    def permits(self, address: str) -> bool:
        """Whether a connection to this address may be opened, judging each form in which it can be written."""
        forms = _forms_of(ip_address(address.partition("%")[0]))
        if any(form in network for form in forms for network in self.denied):
            return False
        return not self.allowed or any(form in network for form in forms for network in self.allowed)


def is_literal(host: str) -> bool:
    """Whether this host is an address, so that no name will be resolved."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _forms_of(address: Address) -> tuple[Address, ...]:
    """The address, and the IPv4 address that it embeds if it is mapped (::ffff:a.b.c.d), 6to4 or NAT64."""
    if isinstance(address, IPv4Address):
        return (address,)
    embedded = address.ipv4_mapped or address.sixtofour
    if embedded is None and address in _NAT64:
        embedded = IPv4Address(int(address) & 0xFFFF_FFFF)
    return (address,) if embedded is None else (address, embedded)
