"""Whom a request to a canister comes from: a principal.

Law: with tokens the token fixes it, and the header may only repeat it. Without tokens everybody is trusted who reaches
the server, so the header says it; without a header the caller is anonymous.
"""

from aiohttp import hdrs, web

from relaycast.serve.access import Access
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.icrc_routes import PrincipalOf, claimed_or_anonymous, claimed_principal, refusal
from relaycast_gateway.principal import principal_of_name, principal_text


def principal_of_caller(caller: Caller) -> bytes:
    """Return the principal that a token stands for."""
    return principal_of_name(caller.name) if caller.principal is None else caller.principal


def callers_of(access: Access) -> PrincipalOf:
    """Return what tells the principal of a request."""
    if not access.tokens:
        return claimed_or_anonymous

    def principal(request: web.Request) -> bytes:
        caller = access.caller(request.headers.get(hdrs.AUTHORIZATION))
        if caller is None:
            raise refusal("unauthorized", 401, "Authorization: expected Bearer and a token of the token file")
        own, claimed = principal_of_caller(caller), claimed_principal(request)
        if claimed not in {None, own}:
            raise refusal("forbidden", 403, f"Icrc-Caller: this token stands for {principal_text(own)}")
        return own

    return principal
