"""The table of faults: what is read from the wire, and which of several faults decides."""

import pytest

from metaloop.common.faults import Fault, Owner, UnknownFault, fault_of, gravest


@pytest.mark.parametrize("fault", Fault, ids=lambda it: it.wire)
def test_fault_is_found_by_its_name_on_the_wire(fault: Fault):
    assert fault_of(fault.wire) is fault


def test_names_on_the_wire_are_unique():
    assert len({fault.wire for fault in Fault}) == len(Fault)


def test_fault_of_a_newer_peer_is_shown_as_named_and_retried():
    fault = fault_of("Invented")

    assert fault == UnknownFault("Invented")
    assert (fault.reason, fault.result, fault.retry_within_seconds) == ("Invented", "retry", None)


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ([Fault.CONFLICT, Fault.UNAVAILABLE], Fault.UNAVAILABLE),
        ([Fault.UNAVAILABLE, Fault.FORBIDDEN], Fault.FORBIDDEN),
        ([Fault.FORBIDDEN, Fault.NAME_TAKEN], Fault.NAME_TAKEN),
        ([Fault.NAME_TAKEN, Fault.INVALID_ANSWER], Fault.INVALID_ANSWER),
        ([Fault.INVALID_ANSWER, Fault.INVALID_PARENT], Fault.INVALID_PARENT),
        ([Fault.INVALID_PARENT, Fault.INVALID_SPEC], Fault.INVALID_SPEC),
        ([Fault.LEASE_LOST, Fault.CIRCUIT_OPEN], Fault.CIRCUIT_OPEN),
        ([Fault.INVALID, Fault.FORBIDDEN], Fault.INVALID),
        ([UnknownFault("Invented"), Fault.CONFLICT], UnknownFault("Invented")),
    ],
)
def test_gravest_of_several_faults_decides_and_the_first_of_equals(faults: list[Fault], expected: Fault):
    assert gravest(faults) is expected or gravest(faults) == expected


def test_rejected_faults_are_those_whose_end_the_watcher_sees():
    """Only a change of a parent, or of its controller with its hooks, brings a rejected key back at once."""
    owners = {fault.owner for fault in Fault if fault.result == "rejected"}

    assert owners == {Owner.CONTROLLER, Owner.PARENT, Owner.HOOK}
    assert [fault for fault in Fault if fault.result == "rejected" and fault.owner is Owner.HOOK] == [Fault.ENDPOINT_INVALID]
