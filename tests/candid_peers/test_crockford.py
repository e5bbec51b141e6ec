"""Ids as Crockford Base32, beside the package of that name."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candid_peers.peer_process import PeerProcess
from relaycast_gateway import crockford

pytestmark = pytest.mark.brokers


@pytest.mark.matrix("ICRC72-03")
@settings(max_examples=300)
@given(st.lists(st.integers(0, 1 << 210), max_size=20))
def test_ids_have_the_text_that_the_package_gives_them(icp: PeerProcess, numbers: list[int]) -> None:
    texts = [crockford.encode(number) for number in numbers]
    lenient = [text.lower().replace("1", "i").replace("0", "o") for text in texts]
    lenient += [f"{text[:3]}-{text[3:]}" for text in texts]
    answer: Any = icp.ask(ask="crockford", numbers=list(map(str, numbers)), texts=[*texts, *lenient])
    assert answer["encoded"] == texts
    assert list(map(int, answer["decoded"])) == numbers * 3
    assert [crockford.decode(text) for text in lenient] == numbers * 2
