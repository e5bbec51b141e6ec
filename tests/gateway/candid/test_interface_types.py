"""Values of every type in the interface of the canisters come back from their message and their text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.candid.candid_types import DrawnValues
from relaycast_gateway.candid import decode, encode, format_values, parse_types, parse_values
from relaycast_gateway.candid.type_graph import ServiceType
from relaycast_gateway.icrc.interface import CanisterRole, definitions, interface_text, methods_of
from searches import examples

NAMED = parse_types(definitions())
DRAWN = DrawnValues(NAMED)


@pytest.mark.matrix("ICRC72-96")
@pytest.mark.parametrize("name", NAMED.names)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_values_of_a_type_come_back(name: str, data: st.DataObject) -> None:
    types, value = f"{definitions()}({name})", data.draw(DRAWN.of(NAMED.names[name]))
    message = encode(types, [value])
    assert decode(message, types) == [value]
    assert parse_values(format_values([value], types), types) == [value]


@pytest.mark.parametrize("role", CanisterRole)
def test_every_method_of_an_interface_is_known(role: CanisterRole) -> None:
    types = parse_types(interface_text(role))
    assert types.service is not None
    service = types.nodes[types.service]
    assert isinstance(service, ServiceType)
    assert sorted(methods_of(role)) == [name for name, _ in service.methods]
