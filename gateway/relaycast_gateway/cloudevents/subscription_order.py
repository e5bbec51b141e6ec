"""A subscription as delivery takes it: which events, encoded how, sent where, tried how often."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from relaycast_gateway.cloudevents.encoding import encoder
from relaycast_gateway.cloudevents.event import TYPE_HEADER
from relaycast_gateway.cloudevents.masks import SETTINGS_WITH_SECRETS
from relaycast_gateway.cloudevents.subscription import EventSubscription
from relaycast_gateway.delivery.order import DeliveryOrder, RetryPolicy
from relaycast_gateway.delivery.secret_names import is_secret_name
from relaycast_gateway.delivery.sender import Target
from relaycast_gateway.delivery.sink_address import parse_sink
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.icrc16 import Icrc16, Tag, blob, text
from relaycast_gateway.matching.predicate import RecordPredicate
from relaycast_gateway.record import EventRecord

PROOF = "proof"
"""The member of the data of a publication that holds its proof."""


def order_of(subscription: EventSubscription, selects: RecordPredicate) -> DeliveryOrder:
    """Return what delivery does for a subscription."""
    delivery, types = subscription.members["delivery"], subscription.members.get("types")
    if subscription.members["config"]["interval"] > 1:
        types = None  # a count sees every record
    return DeliveryOrder(
        subscription_id=subscription.id,
        target=target_of(subscription.members),
        selects=selects,
        encode=_encoding(subscription.members),
        retry=RetryPolicy(
            attempts=delivery["attempts"],
            max_age_seconds=float(delivery["maxage"]),
            timeout_seconds=float(delivery["timeout"]),
        ),
        window=delivery["window"],
        namespaces=None if types is None else frozenset(types),
    )


def target_of(members: Mapping[str, Any]) -> Target:
    """Return where events go: what is secret stands in ``secrets``, which nothing shows."""
    address = parse_sink(members["sink"])
    settings = deepcopy(dict(members["protocolsettings"]))
    secrets: dict[str, Any] = dict(address.secrets)
    for group in SETTINGS_WITH_SECRETS:
        held = settings.get(group, {})
        hidden = {name: held.pop(name) for name in tuple(held) if is_secret_name(name)}
        if hidden:
            secrets[group] = hidden
    credential = {name: value for name, value in members.get("sinkcredential", {}).items() if name != "credentialtype"}
    return Target(members["protocol"], address.public, settings, secrets | credential)


def _encoding(members: Mapping[str, Any]) -> Callable[[EventRecord], WireMessage]:
    config = members["config"]
    encode = encoder(
        members["protocol"],
        members["protocolsettings"],
        mode=members["delivery"]["contentmode"],
        with_data=config["data"] != "none",
    )
    given = config["data"]
    if given == "none":
        return encode
    if given != "full":
        return lambda record: encode(_with_text(record, given))
    if config["proof"]:
        return encode
    return lambda record: encode(_without_proof(record))


def _with_text(record: EventRecord, content: str) -> EventRecord:
    """Return a record whose data are a text of the subscriber's."""
    return record._replace(data=blob(content.encode()), headers=((TYPE_HEADER, text("text/plain")), *record.headers))


def _without_proof(record: EventRecord) -> EventRecord:
    if record.data.tag is not Tag.MAP or all(name != PROOF for name, _ in record.data.content):
        return record
    return record._replace(data=Icrc16(Tag.MAP, tuple(pair for pair in record.data.content if pair[0] != PROOF)))
