"""What a client of the manager did wrong, as a problem document that names the member.

Beside ``type``, ``title``, ``status`` and ``detail``: ``member`` (a path such as ``filter.all[1].exact``), ``got`` and
``expected`` where one member is at fault.
"""

from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.operation_refused import (
    NoSuchSubscription,
    NotYourSubscription,
    OperationRefused,
    SubscriptionChanged,
    TooManySubscriptions,
)
from relaycast_gateway.cloudevents.strict_json import MalformedJson
from relaycast_gateway.problem import Problem

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
