"""The router's part of a dispatcher that runs without a cluster."""

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.observation import CachedRelated
from metaloop.common.report import SyncReport


class NoRouting:
    """No parent has related objects, and nobody counts reports."""

    def subscribe(self, request: RelatedRequest) -> CachedRelated:
        """No related objects."""
        return CachedRelated(fingerprint=request.fingerprint)

    def record_report(self, report: SyncReport) -> None:
        """A sync ended."""
