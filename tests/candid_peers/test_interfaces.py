"""The interface of each canister: other compilers find the same methods in it, with types that mean the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candid_peers.peer_process import Codec, PeerProcess
from candid_peers.peer_shapes import kept_by_all
from gateway.candid.candid_types import DrawnValues
from relaycast_gateway.candid import parse_types
from relaycast_gateway.icrc.interface import CanisterRole, interface_text, methods_of

pytestmark = pytest.mark.brokers


@pytest.mark.matrix("ICRC72-95")
@pytest.mark.parametrize("role", CanisterRole)
def test_compilers_find_the_methods_that_are_served(node: PeerProcess, icp: PeerProcess, role: CanisterRole) -> None:
    text, served = interface_text(role), sorted(methods_of(role))
    found = node.ask(ask="methods", did=text)
    assert sorted(found["compiled"]) == sorted(found["didc"]) == served
    found = icp.ask(ask="methods", did=text)
    assert sorted(found["parsed"]) == sorted(found["loaded"]) == served


METHODS = [(role, name) for role in CanisterRole for name in methods_of(role)]


@pytest.mark.parametrize(("role", "name"), METHODS)
@pytest.mark.parametrize("peer", ["dfinity_candid", "icp_py_core"])
@settings(max_examples=8)
@given(data=st.data())
def test_arguments_and_results_are_read_as_they_were_meant(
    request: pytest.FixtureRequest, peer: str, role: CanisterRole, name: str, data: st.DataObject
) -> None:
    codec = request.getfixturevalue(peer)
    assert isinstance(codec, Codec)
    for types in (methods_of(role)[name].arguments, methods_of(role)[name].results):
        parsed = parse_types(types)
        values = data.draw(DrawnValues(parsed).list_of(parsed.arguments or ()).filter(kept_by_all))
        assert codec.both_ways(types, values) == (values, values)
