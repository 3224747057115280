"""What all tests above the packages share: those under `e2e` and `chart` are marked so, and end-to-end tests run in the
one event loop of their session.
"""

from pathlib import Path

import pytest

_E2E = Path(__file__).parent / "e2e"
_CHART = Path(__file__).parent / "chart"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _E2E in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            # The control plane and the services outlive each test, so their loop has to.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if _CHART in item.path.parents:
            item.add_marker(pytest.mark.chart)
