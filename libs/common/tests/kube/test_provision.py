"""The Secret of a deployment's credentials: made once, completed later, and never changed."""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from itertools import count

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.provision import SECRETS, TOKENS, ProvisionSettings, missing_from, new_token, provide
from metaloop.common.objects import unstructured


def numbered() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"t{next(numbers)}"


async def held(kube: KubeClient, namespace: str) -> dict[str, str]:
    data = unstructured.child_object(await kube.get(SECRETS, namespace, "metaloop-credentials"), "data")
    return {key: b64decode(str(value)).decode() for key, value in data.items()}


def test_every_token_is_another():
    made = missing_from((), new_token=numbered())

    assert len({made[key] for key in TOKENS}) == len(TOKENS)


@pytest.mark.parametrize("service", ["watcher", "reconciler"])
def test_a_service_logs_in_as_the_first_of_its_two_users(service: str):
    made = missing_from((), new_token=numbered())

    assert made[f"nats-{service}-user"] == f"{service}-a"
    assert made[f"nats-{service}-password"] == made[f"nats-{service}-a"] != made[f"nats-{service}-b"]


def test_nothing_is_missing_from_what_was_made():
    assert missing_from(missing_from((), new_token=numbered()), new_token=numbered()) == {}


def test_only_what_is_missing_is_made():
    held = set(missing_from((), new_token=numbered())) - {"gateway", "nats-route"}

    assert missing_from(held, new_token=numbered()) == {"gateway": "t1", "nats-route": "t2"}


def test_a_login_is_not_made_up_for_passwords_that_others_brought():
    """Which of the two users is in use is then for them to say."""
    assert "nats-watcher-user" not in missing_from({"nats-watcher-a", "nats-watcher-b"}, new_token=numbered())


def test_a_token_is_no_number_for_nats_and_cannot_be_guessed():
    tokens = {new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(token[0].isalpha() and token.isalnum() and len(token) > 32 for token in tokens)


async def test_secret_is_made_and_a_second_run_leaves_it_alone(kube: KubeClient, namespace: str):
    settings = ProvisionSettings(credentials_namespace=namespace)

    added = await provide(kube, settings)
    first = await held(kube, namespace)

    assert first == added
    assert await provide(kube, settings) == {}
    assert await held(kube, namespace) == first


async def test_existing_secret_is_completed_and_keeps_what_it_holds(kube: KubeClient, namespace: str):
    data: JsonObject = {"gateway": "bXktb3du", "extra": "eA=="}
    await kube.create(SECRETS, {"metadata": {"namespace": namespace, "name": "metaloop-credentials"}, "data": data})

    await provide(kube, ProvisionSettings(credentials_namespace=namespace))

    found = await held(kube, namespace)
    assert (found["gateway"], found["extra"]) == ("my-own", "x")
    assert set(TOKENS) <= found.keys()


async def test_two_at_once_agree_on_one_secret(kube: KubeClient, namespace: str):
    settings = ProvisionSettings(credentials_namespace=namespace)

    results = await asyncio.gather(*(provide(kube, settings) for _ in range(2)))

    assert [added for added in results if added] == [await held(kube, namespace)]
