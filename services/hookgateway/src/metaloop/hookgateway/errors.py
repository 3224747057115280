"""What can go wrong in the gateway, drawn as a tree.

MetaloopError
├── CallRefused                    the reconciler's fault, or ours; answered with an HTTP status and no verdict
│   ├── WrongToken                 401
│   ├── RequestTooLarge            413
│   ├── LeaseEnded                 408: the caller did not renew its lease in time
│   ├── MalformedCall              422: the target header, or a line about the lease, does not follow the protocol
│   └── Draining                   503
├── CallerLeft                     the reconciler closed its connection: there is nobody to answer
└── HookError                      why one hook call has no answer; becomes a `Rejected` verdict with the class's fault
    ├── EndpointInvalid            the controller's spec must change first; not retried before
    └── CallFailed                 retried
        ├── AddressDenied          the operator's policy denies the endpoint's address
        ├── CredentialsUnusable    retried within half a minute: only the gateway watches the object that must change
        │   ├── CredentialsUnavailable  a Secret or ConfigMap is missing, or the gateway may not read it
        │   └── CredentialsInvalid      its content is of no use: no PEM, a colon in the user name
        ├── StatusUnexpected       any status but 200, 429, and a 304 or 412 that was asked for
        ├── BodyTooLarge           more bytes than the limit, as sent or after decompression
        ├── BodyUndecodable        an unknown content coding, or a body that is not in the coding it claims
        ├── Overloaded             the answers that are being received fill the gateway's memory
        ├── ConnectionNotAccepted  the endpoint accepts others' connections, and did not accept this one in many tries
        ├── PutOff                 nothing was sent; becomes a `Throttled` verdict
        │   ├── ControllerBusy     the controller has as many calls in flight as one may have
        │   ├── EndpointBusy       the endpoint accepts its calls so slowly that the turn of this one did not come
        │   └── CircuitOpen        the endpoint did not answer the last calls
        └── EndpointDown           the endpoint did not answer; the circuit breaker counts these
            ├── ConnectFailed      the name does not resolve, or nobody accepts the connection
            ├── TlsFailed          the handshake failed, or the certificate is not the endpoint's
            ├── ConnectionLost     the connection ended before the answer did, or it was not HTTP
            └── TimedOut           the last byte did not come in time

What each fault means for the reconciler's job stands in one table, `metaloop.common.faults`.
"""

from typing import ClassVar

from metaloop.common.errors import MetaloopError, Terminal
from metaloop.common.faults import Fault


class CallRefused(MetaloopError):
    """A call that gets no verdict, but this HTTP status."""

    status: ClassVar[int]


class WrongToken(CallRefused):
    """The caller does not show the token that reconcilers must show."""

    status = 401


class RequestTooLarge(CallRefused):
    """The body for the webhook is longer than the limit."""

    status = 413


class LeaseEnded(CallRefused):
    """The caller did not renew its lease in time: another reconciler may have the parent by now."""

    status = 408


class MalformedCall(CallRefused):
    """A call that does not follow the protocol between reconciler and gateway; the message says where."""

    status = 422


class Draining(CallRefused):
    """This process is about to end: another gateway may take the call."""

    status = 503


class CallerLeft(MetaloopError):
    """The caller closed its connection: there is nobody to answer."""


class HookError(MetaloopError):
    """Why one hook call has no answer. The message is fit for an Event, so it holds nothing secret."""


class EndpointInvalid(HookError, Terminal):
    """The webhook's spec names no endpoint that can be called. Only a change of the spec can help."""

    fault = Fault.ENDPOINT_INVALID


class CallFailed(HookError):
    """The same call may succeed later."""


class AddressDenied(CallFailed):
    """The operator's policy denies the endpoint's address."""

    fault = Fault.ADDRESS_DENIED


class CredentialsUnusable(CallFailed):
    """Nothing was sent, because there are no usable credentials.

    Only the gateway watches the objects that hold them.
    """


class CredentialsUnavailable(CredentialsUnusable):
    """A Secret or ConfigMap that the webhook refers to is missing, lacks the key, or may not be read."""

    fault = Fault.CREDENTIALS_UNAVAILABLE


class CredentialsInvalid(CredentialsUnusable):
    """A Secret or ConfigMap does not hold what the webhook's spec says."""

    fault = Fault.CREDENTIALS_INVALID


class StatusUnexpected(CallFailed):
    """The webhook answered with a status that is no answer."""

    fault = Fault.STATUS_UNEXPECTED


class BodyTooLarge(CallFailed):
    """The answer is longer than the limit, as it was sent or after decompression."""

    fault = Fault.BODY_TOO_LARGE


class BodyUndecodable(CallFailed):
    """The answer's content coding is unknown, or the body is not in it."""

    fault = Fault.BODY_UNDECODABLE


class Overloaded(CallFailed):
    """The gateway holds as many bytes of unfinished answers as it may."""

    fault = Fault.OVERLOADED


class ConnectionNotAccepted(CallFailed):
    """The endpoint accepted other connections and not this one.

    The concurrency limit is lower now, so the call may be sent again.
    """

    fault = Fault.CONNECTION_NOT_ACCEPTED


class PutOff(CallFailed):
    """Nothing was sent. The call may be made again after `after_seconds`."""

    def __init__(self, message: str, *, after_seconds: float) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class ControllerBusy(PutOff):
    """The controller has as many calls in flight as one may have."""

    fault = Fault.CONTROLLER_BUSY


class EndpointBusy(PutOff):
    """The endpoint accepts its calls so slowly that the turn of this one did not come in time."""

    fault = Fault.ENDPOINT_BUSY


class CircuitOpen(PutOff):
    """The endpoint did not answer the last calls, so it gets none for a while."""

    fault = Fault.CIRCUIT_OPEN


class EndpointDown(CallFailed):
    """The endpoint did not answer. The circuit breaker counts this as a failure."""


class ConnectFailed(EndpointDown):
    """No connection: the name does not resolve, or nobody accepts."""

    fault = Fault.CONNECT_FAILED


class TlsFailed(EndpointDown):
    """No trusted connection: the handshake failed, or the certificate is not the endpoint's."""

    fault = Fault.TLS_FAILED


class ConnectionLost(EndpointDown):
    """The connection ended before the answer did, or what came was not HTTP."""

    fault = Fault.CONNECTION_LOST


class TimedOut(EndpointDown):
    """The last byte of the answer did not come within the webhook's timeout."""

    fault = Fault.TIMED_OUT
