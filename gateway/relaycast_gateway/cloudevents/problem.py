"""What went wrong, as a problem document (RFC 9457) that names the member.

Beside ``type``, ``title``, ``status`` and ``detail``: ``member`` (a path such as ``filter.all[1].exact``), ``got`` and
``expected`` where one member is at fault.
"""

import json
from dataclasses import dataclass, field

from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.operation_refused import (
    NoSuchSubscription,
    NotYourSubscription,
    OperationRefused,
    SubscriptionChanged,
    TooManySubscriptions,
)
from relaycast_gateway.cloudevents.strict_json import MalformedJson

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:relaycast:problem:"

TITLES = {
    "malformed": "The body is not the JSON that it has to be",
    "invalid": "The proposed object holds something invalid",
    "parameter": "A parameter of the query is invalid",
    "unauthorized": "A token is missing or unknown",
    "forbidden": "This is not yours to use",
    "notfound": "There is nothing by this name",
    "method": "This resource does not take the method",
    "changed": "The resource has changed since it was read",
    "too-large": "The body is too large",
    "media-type": "The type of the body is not supported",
    "too-many": "A limit is reached",
    "unavailable": "The gateway is not ready",
}
"""Each kind of problem, which ends its ``type``, and its title."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A ``kind`` of ``TITLES`` with its HTTP status; ``extra`` are further members of the document."""

    kind: str
    status: int
    detail: str
    extra: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return the problem's members, in the order of the standard."""
        return {
            "type": TYPE_PREFIX + self.kind,
            "title": TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
            **self.extra,
        }

    def body(self) -> bytes:
        return json.dumps(self.document(), ensure_ascii=True).encode() + b"\n"


KINDS: dict[type[Exception], tuple[str, int]] = {
    NoSuchSubscription: ("notfound", 404),
    NotYourSubscription: ("forbidden", 403),
    SubscriptionChanged: ("changed", 412),
    TooManySubscriptions: ("too-many", 429),
}


def problem_of(error: InvalidMember | MalformedJson | OperationRefused, *, kind: str = "invalid") -> Problem:
    """Return what a client is told of an error of its own; ``kind`` is that of a wrong member."""
    match error:
        case InvalidMember():
            extra = {"member": error.member, "got": error.got, "expected": error.expected}
            return Problem(kind, 400, str(error), extra)
        case MalformedJson():
            return Problem("malformed", 400, str(error), {"got": error.got, "expected": error.expected})
        case _:
            name, status = KINDS[type(error)]
            return Problem(name, status, str(error))
