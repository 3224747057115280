"""At which pace the services of the lab do what they do late on purpose, so that nobody is disturbed: soon, so that it
can be waited for.
"""

STATUS_SECONDS = 0.5
"""How rarely the status of a controller is written."""

QUICK = {"CONTROLLER_STATUS_SECONDS": str(STATUS_SECONDS), "RELATED_GRACE_SECONDS": "1"}
