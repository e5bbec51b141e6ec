"""The network in one process: what a caller hears of a canister that goes away."""

from collections.abc import Mapping

import pytest

from relaycast_gateway.icrc.canister import Answer, Canister, Handler, Promise
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.subnet import Subnet

CALLER, CALLEE = b"\x01", b"\x02"


class Waiting(Canister):
    """Answers when the test settles its promise."""

    role = CanisterRole.PUBLISHER

    def __init__(self, subnet: Subnet) -> None:
        super().__init__(CALLEE, subnet)
        self.promise: Promise[object] = Promise()

    def handlers(self) -> Mapping[str, Handler]:
        return {"icrc72_handle_notification": lambda _caller, _argument: self.promise}


@pytest.mark.parametrize("goes", ["stops", "is replaced"])
def test_a_caller_hears_once_that_the_callee_went_away(goes: str) -> None:
    subnet = Subnet()
    first = Waiting(subnet)
    subnet.add(first)
    answers: list[Answer] = []
    subnet.call(CALLER, CALLEE, "icrc72_handle_notification", [], answers.append)
    subnet.run(1)
    assert answers == []
    if goes == "stops":
        subnet.stop(CALLEE)
    else:
        subnet.add(Waiting(subnet))
    first.promise.settle(None)
    subnet.run(1)
    assert [answer.refusal for answer in answers] == ["hqgi5-iic went away before it answered"]


def test_adding_the_same_canister_again_refuses_nothing() -> None:
    subnet = Subnet()
    only = Waiting(subnet)
    subnet.add(only)
    answers: list[Answer] = []
    subnet.call(CALLER, CALLEE, "icrc72_handle_notification", [], answers.append)
    subnet.run(1)
    subnet.add(only)
    only.promise.settle(5)
    subnet.run(1)
    assert answers == [Answer(5)]
