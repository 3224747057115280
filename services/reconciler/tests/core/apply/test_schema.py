"""The guessed schema of a kind without its OpenAPI."""

import pytest

from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.schema import Schema, guessed_schema


def guess(api_version: str) -> Schema:
    """The guessed schema of some kind."""
    return guessed_schema(ResourceInfo(api_version=api_version, resource="things", kind="Thing", namespaced=True))


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "networking.k8s.io/v1"])
def test_quantities_of_kubernetes_own_kinds_are_known_by_their_fields_names(api_version: str):
    container = guess(api_version).of("spec").of("template").of("spec").of("containers").items

    assert container.of("resources").of("limits").of("cpu").scalar == "quantity"
    assert container.of("image").scalar == "literal"


@pytest.mark.parametrize("api_version", ["example.com/v1", "gateway.networking.k8s.io/v1"])
def test_other_kinds_are_taken_literally(api_version: str):
    assert guess(api_version).of("spec").of("limits").of("cpu").scalar == "literal"


def test_content_is_taken_literally_whatever_its_keys():
    assert guess("v1").of("data").of("sizeLimit").scalar == "literal"
    assert guess("v1").of("metadata").of("labels").of("limits").of("x").scalar == "literal"
