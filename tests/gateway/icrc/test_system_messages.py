"""The shapes of system messages, in the long form that is written and the short forms of the text."""

import pytest

from relaycast_gateway.icrc import system_messages as messages
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.system_messages import SystemItem, items_of, message_data, system_namespace
from relaycast_gateway.icrc16 import NOTHING, Icrc16, array, blob, map_of, nat, option, text
from relaycast_gateway.principal import principal_text

A, B, C = b"\x0a\x01", b"\x0b\x01", b"\x0c\x01"

WRITTEN = [
    pytest.param(
        SystemItem(
            messages.BROADCASTER_ADD, 7, "a.b", relay=A, subscriber=B, publisher=C, filter="x == 1", skip=Skip(5, 2)
        ),
        array(array(nat(7), text("a.b"), blob(A), blob(B), text("x == 1"), array(nat(5), nat(2)), blob(C))),
        id="broadcaster add",
    ),
    pytest.param(
        SystemItem(messages.BROADCASTER_ADD, 7, "a.b", subscriber=B, publisher=C),
        array(array(nat(7), text("a.b"), blob(b""), blob(B), NOTHING, NOTHING, blob(C))),
        id="broadcaster add without relay, filter and skip",
    ),
    pytest.param(
        SystemItem(messages.RELAY_ADD, 7, "a.b", broadcaster=A, publisher=C, skip=Skip(3)),
        array(array(nat(7), text("a.b"), blob(A), blob(C), NOTHING, array(nat(3), nat(0)))),
        id="relay add",
    ),
    pytest.param(
        SystemItem(messages.RELAYER_ADD, 7, "a.b", relay=A),
        array(array(nat(7), text("a.b"), blob(A))),
        id="relayer add",
    ),
    pytest.param(
        SystemItem(messages.BROADCASTER_REMOVE, 7, "a.b", subscriber=B, publisher=C),
        array(array(nat(7), text("a.b"), blob(B), blob(C))),
        id="broadcaster remove",
    ),
    pytest.param(
        SystemItem(messages.RELAY_REMOVE, 7, "a.b", relay=A, publisher=C),
        array(array(nat(7), text("a.b"), blob(A), blob(C))),
        id="relay remove",
    ),
    pytest.param(
        SystemItem(messages.RELAYER_REMOVE, 7, "a.b", relay=A, publisher=C),
        array(array(nat(7), text("a.b"), blob(A), blob(C))),
        id="relayer remove",
    ),
    pytest.param(
        SystemItem(messages.PUBLISHER_ADD, 7, "a.b", start=3, end=1 << 70, broadcaster=A),
        array(array(nat(7), text("a.b"), nat(3), option(nat(1 << 70)), blob(A))),
        id="publisher add",
    ),
    pytest.param(
        SystemItem(messages.PUBLISHER_ADD, 7, "a.b", start=3, broadcaster=A),
        array(array(nat(7), text("a.b"), nat(3), NOTHING, blob(A))),
        id="publisher add without end",
    ),
    pytest.param(
        SystemItem(messages.PUBLISHER_REMOVE, 7),
        array(nat(7)),
        id="publisher remove",
    ),
    pytest.param(
        SystemItem(messages.SUBSCRIBER_ADD, 7, broadcaster=A),
        array(array(nat(7), blob(A))),
        id="subscriber add",
    ),
    pytest.param(
        SystemItem(messages.SUBSCRIBER_REMOVE, 7),
        array(array(nat(7))),
        id="subscriber remove",
    ),
]


@pytest.mark.matrix(
    "ICRC77-07",
    "ICRC77-08",
    "ICRC77-09",
    "ICRC77-10",
    "ICRC77-11",
    "ICRC77-12",
    "ICRC77-13",
    "ICRC77-14",
    "ICRC77-15",
    "ICRC77-16",
)
@pytest.mark.parametrize(("item", "expected"), WRITTEN)
def test_a_message_has_the_shape_of_the_table_and_reads_back(item: SystemItem, expected: Icrc16) -> None:
    data = message_data(item)

    assert data == map_of({item.key: expected})
    assert list(items_of(data)) == [item]


@pytest.mark.parametrize(
    ("key", "short", "expected"),
    [
        # one item without the outer array, as the text writes it
        (
            messages.RELAYER_ADD,
            array(nat(7), text("a.b"), blob(A)),
            [SystemItem(messages.RELAYER_ADD, 7, "a.b", relay=A)],
        ),
        # numbers alone, where the prose has four members
        (messages.RELAY_REMOVE, array(nat(7)), [SystemItem(messages.RELAY_REMOVE, 7)]),
        (messages.BROADCASTER_REMOVE, array(array(nat(7))), [SystemItem(messages.BROADCASTER_REMOVE, 7)]),
        (
            messages.PUBLISHER_REMOVE,
            array(nat(7), nat(8)),
            [SystemItem(messages.PUBLISHER_REMOVE, it) for it in (7, 8)],
        ),
        (messages.PUBLISHER_REMOVE, array(array(nat(7))), [SystemItem(messages.PUBLISHER_REMOVE, 7)]),
        # nothing at all
        (messages.SUBSCRIBER_REMOVE, array(), []),
        # without the optional publisher; the filter in an Option
        (
            messages.BROADCASTER_ADD,
            array(array(nat(7), text("a"), blob(A), blob(B), option(text("x")), option(array(nat(2))))),
            [SystemItem(messages.BROADCASTER_ADD, 7, "a", relay=A, subscriber=B, filter="x", skip=Skip(2))],
        ),
    ],
)
def test_short_forms_are_read_too(key: str, short: Icrc16, expected: list[SystemItem]) -> None:
    assert list(items_of(map_of({key: short}))) == expected


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (map_of({messages.RELAYER_ADD: text("x")}), "replay_relayer:add: expected an Array, got Text"),
        (map_of({messages.RELAYER_ADD: array(array(text("x")))}), "expected the Nat of a replay first"),
        (map_of({messages.RELAYER_ADD: array(array())}), "expected the Nat of a replay first"),
        (map_of({messages.RELAYER_ADD: array(array(nat(1), nat(2)))}), "namespace: expected Text, got Nat"),
        (map_of({messages.PUBLISHER_ADD: array(array(nat(1), text("a"), text("3")))}), "start: expected Nat, got Text"),
    ],
)
def test_another_form_is_named(data: Icrc16, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        list(items_of(data))


def test_keys_of_other_systems_are_passed_over() -> None:
    assert list(items_of(map_of({"icrc72:publisher:add": array(nat(1))}))) == []
    assert list(items_of(text("hello"))) == []


def test_a_system_namespace_names_one_principal() -> None:
    assert system_namespace(CanisterRole.BROADCASTER, A) == f"icrc72:broadcaster:sys:{principal_text(A)}"
