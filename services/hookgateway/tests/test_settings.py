"""The limits that the gateway has by default fit one another."""

from metaloop.hookgateway.settings import Settings


def test_largest_answer_fits_into_the_next_request():
    """Each of its children comes back there, with the record of what was applied, which is as large."""
    limits = Settings()

    assert 2 * limits.max_response_bytes <= limits.max_request_bytes


def test_largest_answer_can_be_received():
    limits = Settings()

    assert limits.max_response_bytes <= limits.max_unfinished_bytes
