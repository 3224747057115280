import pytest

from metaloop.common.errors import ApiStatus, Conflict, MetaloopError, Persistent, Refused, Transient, Unavailable
from metaloop.common.json import dumps
from metaloop.common.kube import errors


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (404, "", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "ServerTimeout", errors.ServerTimeout),
        (504, "Timeout", errors.ServerTimeout),
        (500, "InternalError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (400, "BadRequest", Refused),
        (405, "MethodNotAllowed", Refused),
        (413, "", Refused),
    ],
)
def test_status_becomes_the_exception_of_its_reason(code: int, reason: str, expected: type[MetaloopError]):
    problem = errors.refusal(ApiStatus(code=code, reason=reason, message="m"), request="GET /x")

    assert type(problem) is expected


def test_reason_takes_precedence_over_the_code():
    problem = errors.refusal(ApiStatus(code=500, reason="AlreadyExists", message="m"), request="POST /x")

    assert isinstance(problem, errors.AlreadyExists)


def test_apply_that_does_not_fit_its_schema_is_refused_despite_500():
    message = "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .data.a: expected string, got 1"

    problem = errors.refusal(ApiStatus(code=500, reason="", message=message), request="PATCH /x")

    assert type(problem) is Refused
    assert ".data.a: expected string" in str(problem)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("", "etcdserver: request is too large"),
        ("", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2500312 vs. 2097152)"),
        ("InternalError", "Internal error occurred: invalid resource name \"a%2f\": [may not contain '%']"),
        ("InternalError", 'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post "https://p"'),
    ],
)
def test_object_that_is_refused_with_500_is_not_an_outage(reason: str, message: str):
    problem = errors.refusal(ApiStatus(code=500, reason=reason, message=message), request="PUT /x")

    assert type(problem) is Refused
    assert message in str(problem)


def test_refusal_is_persistent_and_server_error_is_transient():
    refused = errors.refusal(ApiStatus(code=418, reason="", message="m"), request="GET /x")
    out_of_order = errors.refusal(ApiStatus(code=599, reason="", message="m"), request="GET /x")

    assert isinstance(refused, Persistent)
    assert isinstance(out_of_order, Transient)


def test_message_names_the_request():
    problem = errors.refusal(ApiStatus(code=404, reason="NotFound", message='pods "a" not found'), request="GET /x")

    assert str(problem) == 'NotFound: pods "a" not found (GET /x)'


def test_overloaded_server_can_ask_for_a_delay():
    problem = errors.refusal(ApiStatus(code=503, reason="", message="m"), request="GET /x", retry_after_seconds=7.0)

    assert isinstance(problem, Unavailable)
    assert problem.retry_after_seconds == 7.0


def test_status_object_is_read():
    body = dumps({"kind": "Status", "code": 409, "reason": "Conflict", "message": "changed"})

    assert errors.api_status(409, body) == ApiStatus(code=409, reason="Conflict", message="changed")


@pytest.mark.parametrize(("body", "message"), [(b"upstream is away\n", "upstream is away"), (b"", "status 502"), (b'{"a":1}', '{"a":1}')])
def test_body_that_is_not_a_status_is_quoted(body: bytes, message: str):
    assert errors.api_status(502, body) == ApiStatus(code=502, reason="", message=message)


def test_objects_that_validation_quotes_are_left_out_of_the_message():
    """The reason follows the object, and Events are short."""
    quoted = '{"Volumes":[' + '{"Name":"config"},' * 50 + "]}"
    status = ApiStatus(code=422, reason="Invalid", message=f"spec.template: Invalid value: {quoted}: field is immutable")

    assert "spec.template: Invalid value: {…}: field is immutable" in str(errors.refusal(status, request="PUT /x"))


DENIED = 'things.example.com "a" is forbidden: User "system:serviceaccount:metaloop:watcher" cannot %s resource "%s" in API group "%s" %s'


@pytest.mark.parametrize(
    ("denied", "rule"),
    [
        (
            ("list", "things", "example.com", "at the cluster scope"),
            '{apiGroups: ["example.com"], resources: [things], verbs: [get, list, watch]} to a ClusterRole',
        ),
        (
            ("create", "secrets", "", 'in the namespace "shop"'),
            '{apiGroups: [""], resources: [secrets], verbs: [create]} to a Role in the namespace shop',
        ),
        (
            ("patch", "things/status", "example.com", 'in the namespace "shop"'),
            '{apiGroups: ["example.com"], resources: [things/status], verbs: [patch]} to a Role in the namespace shop',
        ),
    ],
    ids=["a read", "a write", "a status"],
)
def test_denial_says_which_rule_would_allow_it(denied: tuple[str, str, str, str], rule: str):
    problem = errors.refusal(ApiStatus(code=403, reason="Forbidden", message=DENIED % denied), request="GET /x")

    assert str(problem).endswith(f"(GET /x): to allow it, add {rule}")


def test_refusal_by_admission_is_told_as_it_is():
    message = 'admission webhook "policy.example.com" denied the request'

    problem = errors.refusal(ApiStatus(code=403, reason="Forbidden", message=message), request="POST /x")

    assert str(problem).endswith(f"{message} (POST /x)")
