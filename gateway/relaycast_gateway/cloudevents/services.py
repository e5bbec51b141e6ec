"""The description of the service: what a subscription may ask for here (``GET /services``).

Source: CloudEvents Discovery as the subscriptions text cites it: ``subscriptionconfig`` names the keys of ``config``.
"""

from typing import Any

from relaycast_gateway.cloudevents import protocol_settings
from relaycast_gateway.cloudevents.config import CONFIG, DELIVERY, Choice
from relaycast_gateway.cloudevents.subscription import CREDENTIALS
from relaycast_gateway.cloudevents.subscription_book import MOST_SUBSCRIPTIONS
from relaycast_gateway.delivery.secret_names import MASK

DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "sql")

EVENT_TYPES = {
    "data.published": "A publisher wrote a value under a key.",
    "key.expired": "The time to live of a value is over.",
    "keys.deleted": "A publisher deleted keys.",
    "keys.force_deleted": "The relay chain's root deleted keys.",
    "publisher.registered": "A parachain became a publisher.",
    "publisher.deregistered": "A parachain is no longer a publisher.",
    "publisher.disabled": "The relay chain's root disabled a publisher.",
    "publisher.enabled": "The relay chain's root enabled a publisher again.",
    "subscriber.updated": "A subscriber's callback received a value.",
    "subscriber.deleted": "A subscriber was told that a key is no longer published.",
    "block.imported": "A block was built.",
}
"""What the chains tell, by the end of the ``type``."""


def services(prefix: str, dialects: tuple[str, ...] = DIALECTS) -> dict[str, Any]:
    """Return the description; ``prefix`` begins every type of event."""
    return {
        "id": prefix,
        "name": "relaycast",
        "description": "What the chains of an emulated Polkadot publish, and what becomes of it.",
        "specversions": ["1.0"],
        "subscriptionurl": "/subscriptions",
        "apis": ["HTTP"],
        "subscriptiondialects": list(dialects),
        "subscriptionconfig": {name: choice.type for name, choice in CONFIG.items()},
        "subscriptionconfigdetails": _details(CONFIG),
        "delivery": _details(DELIVERY),
        "protocols": list(protocol_settings.SETTINGS),
        "protocolsettings": {
            protocol: {name: _setting(setting) for name, setting in settings.items()}
            for protocol, settings in protocol_settings.SETTINGS.items()
        },
        "sinks": {
            protocol: {"schemes": list(form.schemes), "example": form.example}
            for protocol, form in protocol_settings.SINKS.items()
        },
        "sinkcredential": {kind: list(names) for kind, names in CREDENTIALS.items()},
        "secretmask": MASK,
        "subscriptionlimit": MOST_SUBSCRIPTIONS,
        "events": [
            {"type": f"{prefix}.{name}", "description": description} for name, description in EVENT_TYPES.items()
        ],
    }


def _details(choices: Any) -> dict[str, Any]:
    return {name: _choice(choice) for name, choice in choices.items()}


def _choice(choice: Choice) -> dict[str, Any]:
    bounds = {"minimum": choice.least, "maximum": choice.most, "default": choice.default}
    found = {"type": choice.type, "description": choice.description}
    found |= {name: value for name, value in bounds.items() if value is not None}
    return found | ({"values": list(choice.texts)} if choice.texts else {})


def _setting(setting: protocol_settings.ProtocolSetting) -> dict[str, Any]:
    found: dict[str, Any] = {"type": setting.type, "description": setting.description, "required": setting.required}
    if setting.default is not None:
        found["default"] = setting.default
    return found | ({"values": list(setting.choices)} if setting.choices else {})
