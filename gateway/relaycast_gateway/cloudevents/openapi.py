"""The interface as an OpenAPI 3.1 document, made from the tables that validation and routing read."""

from collections.abc import Mapping
from typing import Any

from relaycast_gateway.cloudevents.config import CONFIG, DELIVERY, Choice
from relaycast_gateway.cloudevents.operations import JSON, OPERATIONS, Operation
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS, ProtocolSetting
from relaycast_gateway.cloudevents.subscription import CREDENTIALS, MEMBERS, MOST_TYPES, REQUIRED
from relaycast_gateway.delivery.secret_names import MASK
from relaycast_gateway.problem import PROBLEM_TYPE, TITLES, TYPE_PREFIX

Schema = dict[str, Any]

TYPES: Mapping[str, Schema] = {
    "String": {"type": "string"},
    "Integer": {"type": "integer"},
    "Boolean": {"type": "boolean"},
    "Map": {"type": "object"},
    "String or Integer": {"type": ["string", "integer"]},
}
"""CloudEvents' names of types as JSON Schema."""

TOO_MANY = 429
"""What any request may be answered with: one that came too fast."""

STATUSES = {
    200: "As asked for",
    201: "Created",
    204: "There is none, and Prefer: return=minimal was given",
    304: "It is still the one that If-None-Match names",
    400: "The request is wrong; the problem names the member",
    401: "A token is missing or unknown",
    403: "It is somebody else's",
    404: "There is none by this id",
    412: "It has changed since it was read",
    413: "The body is too large",
    415: "The body is of another type",
    TOO_MANY: "The limit of subscriptions is reached, or that of requests a second: see Retry-After",
}


def openapi(version: str) -> dict[str, Any]:
    """Return the document; ``version`` is the server's."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "relaycast: CloudEvents subscriptions",
            "version": version,
            "description": "Subscription manager by the CloudEvents Subscriptions API 0.1-wip.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": {path: _path(path, operations) for path, operations in OPERATIONS.items()},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(path: str, operations: Mapping[str, Operation]) -> dict[str, Any]:
    found: dict[str, Any] = {method.lower(): _operation(operation) for method, operation in operations.items()}
    name = operations[next(iter(operations))].name
    found["options"] = {
        "operationId": f"options_of_{name}",
        "summary": "Say in Allow which methods this path takes.",
        "responses": {
            "204": {"description": "See Allow", "headers": {"Allow": {"schema": {"type": "string"}}}},
        },
    }
    if "{id}" in path:
        described = {"description": "the id of a subscription", "required": True, "schema": {"type": "string"}}
        found["parameters"] = [{"name": "id", "in": "path"} | described]
    return found


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary}
    parameters: list[dict[str, Any]] = []
    for it in operation.parameters:
        bounds = {name: bound for name, bound in (("minimum", it.least), ("maximum", it.most)) if bound is not None}
        schema = {"type": it.type, **bounds}
        parameters.append({"name": it.name, "in": "query", "description": it.description, "schema": schema})
    if operation.takes_if_match:
        says = "act only if the subscription still has this entity tag"
        parameters.append({"name": "If-Match", "in": "header", "description": says, "schema": {"type": "string"}})
    if parameters:
        found["parameters"] = parameters
    if operation.body:
        found["requestBody"] = {"required": operation.needs_body, "content": _content(JSON, operation.body)}
    found["responses"] = {}
    for status, schema_name in operation.answers.items():
        answer: dict[str, Any] = {"description": STATUSES[status]}
        if schema_name:
            answer["content"] = _content(operation.media_type, schema_name)
        headers = _headers(status, schema_name)
        found["responses"][str(status)] = answer | ({"headers": headers} if headers else {})
    for status in sorted({*operation.problems, TOO_MANY}):
        problem = {"description": STATUSES[status], "content": _content(PROBLEM_TYPE, "Problem")}
        retry = {"headers": {"Retry-After": {"schema": {"type": "integer"}}}} if status == TOO_MANY else {}
        found["responses"][str(status)] = problem | retry
    return found


def _headers(status: int, schema: str) -> dict[str, Any]:
    text = {"schema": {"type": "string"}}
    found = {"ETag": text} if schema == "Subscription" else {}
    found |= {"Location": text} if status == 201 else {}
    return found | (
        {"Link": {"description": "rel=next, where there is more"} | text} if schema.endswith("List") else {}
    )


def _content(media_type: str, schema: str) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _schemas() -> dict[str, Schema]:
    ref = {"$ref": "#/components/schemas/Subscription"}
    proposed = _subscription()
    stored = {**proposed, "required": ["id", *REQUIRED, "config", "protocolsettings", "delivery"]}
    whole = {"type": "integer", "minimum": 0}
    text = {"type": "string"}
    return {
        "ProposedSubscription": proposed,
        "Subscription": stored,
        "SubscriptionList": {"type": "array", "items": ref},
        "Filter": _filter(),
        "DeliveryList": {"type": "array", "items": {"$ref": "#/components/schemas/Delivery"}},
        "Delivery": _object(
            {
                "subscription": text,
                "status": {"enum": ["active", "waiting", "broken", "stopped"]},
                "sequence": {"description": "Done up to this event, but for what is pending.", **whole},
                "behind": {"description": "Events of the log after that one.", **whole},
                **dict.fromkeys(("pending", "delivered", "retries", "dead"), whole),
                "lasterror": text,
                "nextattempt": {"type": "string", "format": "date-time"},
            },
            required=("subscription", "status", "sequence", "behind", "pending", "delivered", "retries", "dead"),
        ),
        "DeadLetterCounts": {"type": "array", "items": _object({"subscription": text, "dead": whole})},
        "DeadLetterList": {
            "type": "array",
            "items": _object(
                {
                    "subscription": text,
                    "sequence": whole,
                    **dict.fromkeys(("reason", "givenup", "id", "source", "type", "subject", "time"), text),
                    "attempts": whole,
                },
                required=("subscription", "sequence", "reason", "givenup", "attempts"),
            ),
        },
        "RedeliveryRequest": _object({"sequences": {"type": "array", "items": whole}}, required=()),
        "Redelivery": _object({"subscription": text, "redelivered": whole}),
        "Service": {"type": "object"},
        "Document": {"type": "object"},
        "Text": text,
        "Problem": {
            **_object(
                {
                    "type": {"enum": [TYPE_PREFIX + kind for kind in TITLES]},
                    "title": text,
                    "status": {"type": "integer"},
                    "detail": text,
                    "member": text,
                    "got": text,
                    "expected": text,
                },
                required=("type", "title", "status", "detail"),
            ),
        },
    }


def _subscription() -> Schema:
    members: dict[str, Schema] = {
        "id": {"type": "string"},
        "source": {"type": "string", "format": "uri-reference", "minLength": 1},
        "types": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_TYPES,
            "items": {"type": "string", "minLength": 1},
        },
        "config": _object({name: _choice(choice) for name, choice in CONFIG.items()}, required=()),
        "filter": {"anyOf": [{"$ref": "#/components/schemas/Filter"}, {"type": "object", "maxProperties": 0}]},
        "filters": {"type": "array", "items": {"$ref": "#/components/schemas/Filter"}},
        "sink": {"type": "string", "format": "uri"},
        "protocol": {"enum": list(SETTINGS)},
        "protocolsettings": {"type": "object"},
        "sinkcredential": {"oneOf": [_credential(kind, names) for kind, names in CREDENTIALS.items()]},
        "delivery": _object({name: _choice(choice) for name, choice in DELIVERY.items()}, required=()),
    }
    described = {name: {"description": MEMBERS[name]} | schema for name, schema in members.items()}
    by_protocol = [
        {
            "if": {"properties": {"protocol": {"const": protocol}}, "required": ["protocol"]},
            "then": {"properties": {"protocolsettings": _settings(settings)}},
        }
        for protocol, settings in SETTINGS.items()
    ]
    both = {"not": {"required": ["filter", "filters"]}}
    return _object(described, required=REQUIRED) | {"allOf": [*by_protocol, both]}


def _object(properties: Mapping[str, Schema], *, required: tuple[str, ...] | None = None) -> Schema:
    found: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    names = list(properties) if required is None else list(required)
    return found | ({"required": names} if names else {})


def _choice(choice: Choice) -> Schema:
    found: Schema = {"description": choice.description, **TYPES[choice.type]}
    if choice.default is not None:
        found["default"] = choice.default
    if choice.least is not None:
        found |= {"minimum": choice.least, "maximum": choice.most}
    return found | ({"enum": list(choice.texts)} if choice.texts else {})


def _settings(settings: Mapping[str, ProtocolSetting]) -> Schema:
    properties = {name: _setting(setting) for name, setting in settings.items()}
    return _object(properties, required=tuple(name for name, setting in settings.items() if setting.required))


def _setting(setting: ProtocolSetting) -> Schema:
    found: Schema = {"description": setting.description}
    found |= {"enum": list(setting.choices)} if setting.choices else TYPES[setting.type]
    return found | ({} if setting.default is None else {"default": setting.default})


def _credential(kind: str, names: tuple[str, ...]) -> Schema:
    said = {"type": "string", "description": f"Shown as {MASK} where it is a secret; the mask keeps what is stored."}
    return _object({"credentialtype": {"const": kind}} | dict.fromkeys(names, said))


def _filter() -> Schema:
    ref = {"$ref": "#/components/schemas/Filter"}
    attribute = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {"type": "string", "minLength": 1},
    }
    several = {"type": "array", "minItems": 1, "items": ref}
    return {
        "description": "One dialect and what it compares; others than these are refused.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            **dict.fromkeys(("exact", "prefix", "suffix"), attribute),
            **dict.fromkeys(("all", "any"), several),
            "not": ref,
            "sql": {"type": "string", "minLength": 1, "description": "an expression of CloudEvents SQL v1"},
        },
    }
