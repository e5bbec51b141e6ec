"""Messages as JSON and bytes."""

from collections.abc import Iterator

from relaycast.vectors.vector import scenario
from relaycast.vectors.xcm_vector import XcmBytes, XcmVector


def vectors(seed: int) -> Iterator[XcmVector]:
    """Yield the vectors."""
    del seed
    yield XcmBytes(
        id="xcm/bytes/publish",
        why="the message of the scenario: a key of zeros, three bytes, no expiry",
        source=scenario("XCM Publish Instruction / Successful publish"),
        message=[{"Publish": {"key": "0x" + "00" * 32, "value": "0x010203", "ttl": 0}}],
        encoded="0x",
    )
