"""What went wrong, as a problem document: ``type``, ``title``, ``status``, ``detail`` and further members.

Source: RFC 9457.
"""

import json
from dataclasses import dataclass, field

from aiohttp import hdrs, web

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

TITLES_OF_CALLS = {
    "candid": "The body is not the Candid that it has to be",
    "refused": "The canister refused the call",
}
"""Kinds that only calls of canisters have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of ``TITLES`` or ``TITLES_OF_CALLS`` with its HTTP status; ``extra`` are further members."""

    kind: str
    status: int
    detail: str
    extra: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return the problem's members, in the order of the standard."""
        return {
            "type": TYPE_PREFIX + self.kind,
            "title": TITLES.get(self.kind) or TITLES_OF_CALLS[self.kind],
            "status": self.status,
            "detail": self.detail,
            **self.extra,
        }

    def body(self) -> bytes:
        return json.dumps(self.document(), ensure_ascii=True).encode() + b"\n"


class RequestRefused(Exception):
    """A request that is answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def problem_response(problem: Problem, *, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=problem.status, body=problem.body(), headers={hdrs.CONTENT_TYPE: PROBLEM_TYPE, **(headers or {})}
    )
