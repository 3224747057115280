"""What can go wrong in the gateway, drawn as a tree.

MetaloopError
├── CallRefused                    the reconciler's fault, or our end; answered with its status and no verdict
│   ├── WrongToken                 401
│   ├── RequestTooLarge            413
│   ├── MalformedCall              422: a target that is not the wire's
│   └── Draining                   503
└── HookError                      why one hook call has no answer; becomes a `Rejected` verdict named after its class
    ├── EndpointInvalid            the controller's spec must change first: no URL, URL credentials, another scheme
    └── CallFailed                 may be different at the next try
        ├── AddressDenied          the operator does not let webhooks live at that address
        ├── CredentialsUnusable    tried again within half a minute, as nobody else hears of what mends it
        │   ├── CredentialsUnavailable  a Secret or ConfigMap that is missing, or that we may not read
        │   └── CredentialsInvalid      one that is there and of no use: no PEM, a colon in the user name
        ├── StatusUnexpected       any status but 200, 429, and a 304 or 412 that was asked for
        ├── BodyTooLarge           more bytes than the limit, as sent or once decompressed
        ├── BodyUndecodable        a content coding that we do not know, or a body that is not in it
        ├── Overloaded             the gateway holds too many bytes of answers already
        ├── ConnectionNotAccepted  the endpoint accepts others' connections, and did not accept this one in many tries
        ├── PutOff                 nothing was sent; becomes a `Throttled` verdict
        │   ├── ControllerBusy     the controller has as many calls in flight as one may have
        │   └── CircuitOpen        the endpoint did not answer the last calls
        └── EndpointDown           the endpoint did not even answer; the circuit breaker counts these
            ├── ConnectFailed      the name does not resolve, or nobody accepts
            ├── TlsFailed          the handshake failed, or the certificate is not the endpoint's
            ├── ConnectionLost     the connection ended before the answer did, or it was not HTTP
            └── TimedOut           no last byte in time
"""

from typing import ClassVar

from metaloop.common.errors import MetaloopError, Terminal, Transient


class CallRefused(MetaloopError):
    """A call that gets no verdict, but this HTTP status."""

    status: ClassVar[int]


class WrongToken(CallRefused):
    """The caller does not show the token that reconcilers must show."""

    status = 401


class RequestTooLarge(CallRefused):
    """The body for the webhook is longer than the limit."""

    status = 413


class MalformedCall(CallRefused):
    """A call that does not follow the wire between reconciler and gateway; the message says where."""

    status = 422


class Draining(CallRefused):
    """This process is about to end: another gateway may take the call."""

    status = 503


class HookError(MetaloopError):
    """Why one hook call has no answer. The message is fit for an Event, so it holds nothing secret."""

    again_within_seconds: ClassVar[float | None] = None
    """The longest that the next try should be put off; None where the usual backoff will do."""


class EndpointInvalid(HookError, Terminal):
    """The webhook's spec names no endpoint that can be called; nothing but a change of the spec can help."""


class CallFailed(HookError, Transient):
    """The same call may succeed later."""


class AddressDenied(CallFailed):
    """The endpoint's address is one that the operator's policy keeps webhooks from."""


class CredentialsUnusable(CallFailed):
    """Nothing was sent, for want of credentials; what mends it is a change of an object that only the gateway watches."""

    again_within_seconds = 30.0


class CredentialsUnavailable(CredentialsUnusable):
    """A Secret or ConfigMap that the webhook refers to is missing, lacks the key, or may not be read."""


class CredentialsInvalid(CredentialsUnusable):
    """A Secret or ConfigMap holds something that cannot serve as what the webhook says it is."""


class StatusUnexpected(CallFailed):
    """The webhook answered with a status that is no answer."""


class BodyTooLarge(CallFailed):
    """The answer is longer than the limit, as it was sent or once decompressed."""


class BodyUndecodable(CallFailed):
    """The answer's content coding is unknown, or the body is not in it."""


class Overloaded(CallFailed):
    """The gateway holds as many bytes of unfinished answers as it may."""


class ConnectionNotAccepted(CallFailed):
    """The endpoint accepted other connections and not this one. The concurrency limit is lower now, so the call may be sent again."""


class PutOff(CallFailed):
    """Nothing was sent; a call after `after_seconds` may be."""

    def __init__(self, message: str, *, after_seconds: float) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class ControllerBusy(PutOff):
    """The controller has as many calls in flight as one may have."""


class CircuitOpen(PutOff):
    """The endpoint did not answer the last calls, and is left in peace for a while."""


class EndpointDown(CallFailed):
    """The endpoint did not even answer: the circuit breaker counts it."""


class ConnectFailed(EndpointDown):
    """No connection: the name does not resolve, or nobody accepts."""


class TlsFailed(EndpointDown):
    """No trusted connection: the handshake failed, or the certificate is not the endpoint's."""


class ConnectionLost(EndpointDown):
    """The connection ended before the answer did, or what came was not HTTP."""


class TimedOut(EndpointDown):
    """The last byte of the answer did not come within the webhook's timeout."""
