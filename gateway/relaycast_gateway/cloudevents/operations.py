"""The operations of the HTTP binding: one table, which routing, ``Allow`` headers and the OpenAPI document read."""

from collections.abc import Mapping
from dataclasses import dataclass

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query."""

    name: str
    type: str
    description: str
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path: ``answers`` are the schemas of what it returns, by status; ``""`` is no body."""

    name: str
    summary: str
    answers: Mapping[int, str]
    problems: tuple[int, ...] = ()
    body: str = ""
    needs_body: bool = True
    parameters: tuple[Parameter, ...] = ()
    media_type: str = JSON
    takes_if_match: bool = False


MOST_LISTED = 1_000

LIMIT = Parameter("limit", "integer", "return at most this many", 1, MOST_LISTED)

AFTER = Parameter("after", "string", "only those behind the one with this id")

OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    "/subscriptions": {
        "GET": Operation(
            "query_subscriptions",
            "List your subscriptions in the order of their creation; an admin's list has those of all.",
            {200: "SubscriptionList", 204: ""},
            (400, 401),
            parameters=(
                LIMIT,
                AFTER,
                Parameter("protocol", "string", "only those with this protocol"),
                Parameter("type", "string", "only those whose types, if any, name this type"),
            ),
        ),
        "POST": Operation(
            "create_subscription",
            "Create a subscription; its id is given by the manager.",
            {201: "Subscription"},
            (400, 401, 413, 415, 429),
            body="ProposedSubscription",
        ),
    },
    "/subscriptions/{id}": {
        "GET": Operation(
            "retrieve_subscription", "Return a subscription.", {200: "Subscription", 304: ""}, (401, 403, 404)
        ),
        "PUT": Operation(
            "update_subscription",
            "Replace everything but the id. Events in flight end under the old settings.",
            {200: "Subscription"},
            (400, 401, 403, 404, 412, 413, 415),
            body="ProposedSubscription",
            takes_if_match=True,
        ),
        "DELETE": Operation(
            "delete_subscription",
            "Delete a subscription and return it. No attempt at a delivery begins afterwards.",
            {200: "Subscription"},
            (401, 403, 404, 412),
            takes_if_match=True,
        ),
    },
    "/subscriptions/{id}/delivery": {
        "GET": Operation("retrieve_delivery", "Return how a subscription fares.", {200: "Delivery"}, (401, 403, 404))
    },
    "/deliveries": {
        "GET": Operation(
            "query_deliveries",
            "Return how each of your subscriptions fares, in the order of their creation.",
            {200: "DeliveryList"},
            (400, 401),
            parameters=(LIMIT, AFTER),
        )
    },
    "/deadletters": {
        "GET": Operation(
            "count_dead_letters",
            "List your subscriptions that have dead letters, each with their number.",
            {200: "DeadLetterCounts"},
            (401,),
        )
    },
    "/deadletters/{id}": {
        "GET": Operation(
            "list_dead_letters",
            "List the events that were given up for a subscription, in the order of the log.",
            {200: "DeadLetterList"},
            (400, 401, 403, 404),
            parameters=(LIMIT, Parameter("after", "integer", "only events behind this sequence number", 0)),
        )
    },
    "/deadletters/{id}/redeliver": {
        "POST": Operation(
            "redeliver",
            "Deliver dead letters again, all of them or those named; each gets all its attempts anew.",
            {200: "Redelivery"},
            (400, 401, 403, 404, 413, 415),
            body="RedeliveryRequest",
            needs_body=False,
        )
    },
    "/services": {
        "GET": Operation("describe_service", "Say what a subscription may ask for here.", {200: "Service"}, (401,))
    },
    "/openapi.json": {"GET": Operation("describe_interface", "Return this document.", {200: "Document"}, (401,))},
    "/metrics": {
        "GET": Operation(
            "metrics",
            "Return figures for Prometheus: those of your subscriptions, or of all for an admin.",
            {200: "Text"},
            (401,),
            media_type="text/plain",
        )
    },
}
"""Each path with its operations by method. Every path takes ``OPTIONS``, and ``HEAD`` where it takes ``GET``."""


def allowed(path: str) -> str:
    """Return the value of ``Allow`` for a path of the table."""
    methods = list(OPERATIONS[path])
    return ", ".join([*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"])
