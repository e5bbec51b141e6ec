"""A further delivery protocol: subscriptions, the service's description and OpenAPI take it like the text's six."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from relaycast_gateway.cloudevents.protocol_settings import SETTINGS, SINKS, ProtocolSetting, SinkForm
from relaycast_gateway.delivery.senders import SENDERS, SenderPlace
from relaycast_gateway.delivery.sink_address import DEFAULT_PORTS


@dataclass(frozen=True, slots=True)
class ProtocolPlugin:
    """What a protocol brings: ``sender`` is the class ``NAME`` in ``MODULE`` of ``MODULE:NAME``.

    The class takes a ``Target`` and a ``SinkGuard``. It gets the attributes of an event as properties ``ce-NAME``.
    """

    name: str
    schemes: Mapping[str, int]
    """Schemes of its sinks, each with the port that it implies."""

    example: str
    sender: str
    settings: Mapping[str, ProtocolSetting] = field(default_factory=dict)


def add_protocol(plugin: ProtocolPlugin) -> Callable[[], None]:
    """Offer a protocol in this process; return what takes it back. ``ValueError`` for a name or a scheme in use."""
    if plugin.name in SETTINGS:
        raise ValueError(f"protocol {plugin.name}: got a name in use, expected another than {', '.join(SETTINGS)}")
    taken = [scheme for scheme in plugin.schemes if scheme in DEFAULT_PORTS]
    if taken:
        raise ValueError(f"protocol {plugin.name}: got the scheme {taken[0]}, which is in use, expected another")
    module, _, sender = plugin.sender.partition(":")
    settings, sinks = cast("dict[str, object]", SETTINGS), cast("dict[str, object]", SINKS)
    senders, ports = cast("dict[str, object]", SENDERS), cast("dict[str, int]", DEFAULT_PORTS)
    settings[plugin.name] = plugin.settings
    sinks[plugin.name] = SinkForm(tuple(plugin.schemes), plugin.example, has_path=True)
    senders[plugin.name] = SenderPlace(module, sender)
    ports |= plugin.schemes

    def remove() -> None:
        for table in (settings, sinks, senders):
            table.pop(plugin.name, None)
        for scheme in plugin.schemes:
            ports.pop(scheme, None)

    return remove
