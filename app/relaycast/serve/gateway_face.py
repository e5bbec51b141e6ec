"""The gateway as a face of the server: opened as a user asked for it, and told what the chains do."""

from collections.abc import Iterable

from relaycast.refusal import BadInput, nearest, shown
from relaycast.serve.network import LivingNetwork
from relaycast.version import __version__
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.log import UnusableLog
from relaycast_ledger.exceptions import WorkFolderInUse

NODE = "node"
CLOUDEVENTS = "cloudevents"
FACES = (NODE, CLOUDEVENTS)


def faces_of(text: str) -> frozenset[str]:
    """Return the faces that a user named, all for the empty text; raises ``BadInput``."""
    names = [name.strip() for name in text.split(",")] if text else list(FACES)
    for name in names:
        if name not in FACES:
            raise BadInput("--face", shown(name), f"some of {', '.join(FACES)}", nearest(name, list(FACES)))
    return frozenset(names)


def open_gateway(network: LivingNetwork, data: str | None, allow_sink: Iterable[str]) -> Gateway:
    """Open a gateway that hears what ``network`` tells; raises ``BadInput``.

    Its files stand in the folder ``data``; without one all is in memory.
    """
    if data == "":
        raise BadInput("--data", "an empty text", "a folder")
    allowed = tuple(allow_sink)
    for entry in allowed:
        try:
            SinkGuard((entry,))
        except ValueError:
            expected = "HOST, HOST:PORT or a network such as 10.1.0.0/16"
            raise BadInput("--allow-sink", shown(entry), expected) from None
    try:
        gateway = Gateway.open(data, allow_sink=allowed, version=__version__)
    except UnusableLog as error:
        place = "" if error.place == data else f": {error.place}"
        raise BadInput(f"--data {data}{place}", error.got, error.expected) from None
    except WorkFolderInUse:
        raise BadInput("--data", f"{data}, which another server uses", "a folder of its own for each server") from None
    gateway.follow(network.live.chains, network.title, key_names=network.key_names)
    return gateway
