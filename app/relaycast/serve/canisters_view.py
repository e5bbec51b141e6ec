"""The canisters as the live page shows them: what they did, and the newest publications."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaycast_gateway.icrc_face import GatewayCanisters


def shown_canisters(face: "GatewayCanisters") -> dict[str, Any]:
    """Return what the page says of the canisters."""
    return {**asdict(face.figures()), "namespaces": [asdict(it) for it in face.namespaces()]}
