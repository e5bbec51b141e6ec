"""The live page as markup: what stands there before the first event comes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaycast.report.templates import own_markup, render
from relaycast.serve.faces import Faces
from relaycast.serve.usage import ServedAt, chain_lines, icrc_lines, subscription_lines, wamp_lines

if TYPE_CHECKING:
    from relaycast_gateway.wamp.router_config import RealmConfig


def render_live(
    title: str,
    host: str,
    relay: str,
    parachains: Mapping[int, str],
    first: str,
    *,
    faces: Faces,
    realm: "RealmConfig | None" = None,
    dialect: str = "all",
) -> str:
    """Return the page of a server that is reached as ``host``; ``relay`` and ``parachains`` are names of chains.

    ``first`` is what happened so far, in JSON; ``realm`` is the first one of the WAMP router, ``dialect`` the
    methods that are served.
    """
    lines = chain_lines(ServedAt(host), relay, parachains, dialect=dialect) if faces.node else []
    lines += subscription_lines(ServedAt(host)) if faces.cloudevents else []
    lines += [] if realm is None else wamp_lines(ServedAt(host), realm)
    lines += icrc_lines(ServedAt(host)) if faces.icrc else []
    return render(
        "live.html.j2", title=title, lines=lines, with_node=faces.node, first=own_markup(first.replace("<", "\\u003c"))
    )
