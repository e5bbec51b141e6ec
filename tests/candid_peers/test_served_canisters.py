"""A client in JavaScript, made from the interface that the server gives, calls every method of its canisters."""

from urllib.request import urlopen

import pytest

import relaycast as rc
from app.served_canisters import REFUSED, argument_for
from candid_peers.did_client import CallFailed, did_client
from relaycast_gateway.candid import parse_values
from relaycast_gateway.icrc.interface import CanisterRole, methods_of
from relaycast_gateway.icrc_face import ARCHIVIST, BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import principal_of_name, principal_text

pytestmark = pytest.mark.brokers

CALLER = principal_text(principal_of_name("alice"))


@pytest.mark.matrix("ICRC72-95")
def test_a_client_made_from_the_served_interface_calls_every_method() -> None:
    served = {
        ORCHESTRATOR: CanisterRole.ORCHESTRATOR,
        BROADCASTER: CanisterRole.BROADCASTER,
        ARCHIVIST: CanisterRole.PUBLISHER,
    }
    with rc.serve("oracle") as chains:
        for principal, role in served.items():
            canister = principal_text(principal)
            with urlopen(f"{chains.http_url}/icrc/{canister}/candid", timeout=60) as response:
                did = response.read().decode()
            with did_client(did, chains.http_url, canister, CALLER) as client:
                assert sorted(client.methods) == sorted(methods_of(role))
                for name, method in methods_of(role).items():
                    values = parse_values(argument_for(method), method.arguments)
                    if name in REFUSED:
                        with pytest.raises(CallFailed) as refused:
                            client.call(name, values)
                        assert refused.value.status == 422
                    else:
                        assert len(client.call(name, values)) == method.has_result
