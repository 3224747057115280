"""The readiness of an object as a value, and the conditions of a status."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

Status: TypeAlias = Literal["Current", "InProgress", "Failed", "Terminating"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """How an object is, and why it is not Current."""

    status: Status
    message: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the object is as its own controller wants it."""
        return self.status == "Current"


CURRENT: Final = Readiness("Current")


def in_progress(message: str) -> Readiness:
    """It is on its way."""
    return Readiness("InProgress", message)


def failed(message: str) -> Readiness:
    """It will not come any further by itself."""
    return Readiness("Failed", message)


def terminating(message: str) -> Readiness:
    """It is being deleted."""
    return Readiness("Terminating", message)


def condition(obj: JsonObject, name: str) -> JsonObject | None:
    """The condition of this type in an object's status; None if it has none."""
    conditions = unstructured.child_objects(unstructured.child_object(obj, "status"), "conditions")
    return next((each for each in conditions if each.get("type") == name), None)


def is_true(obj: JsonObject, name: str) -> bool:
    """Whether an object has a condition of this type that is true."""
    return (condition(obj, name) or {}).get("status") == "True"


def is_false(obj: JsonObject, name: str) -> bool:
    """Whether an object has a condition of this type that is false."""
    return (condition(obj, name) or {}).get("status") == "False"
