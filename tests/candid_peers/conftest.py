"""Peers of Candid, each started once for all tests."""

from collections.abc import Iterator

import pytest

from candid_peers.peer_process import NODE, PYTHON, Codec, PeerProcess, TextCodec, peer


@pytest.fixture(scope="session")
def node() -> Iterator[PeerProcess]:
    with peer(NODE, "dfinity_candid.mjs") as running:
        yield running


@pytest.fixture(scope="session")
def icp() -> Iterator[PeerProcess]:
    with peer(PYTHON, "icp_codec.py") as running:
        yield running


@pytest.fixture(scope="session")
def dfinity_candid(node: PeerProcess) -> Codec:
    """@dfinity/candid, with types as @icp-sdk/bindgen compiles them."""
    return Codec(node)


@pytest.fixture(scope="session")
def icp_py_core(icp: PeerProcess) -> Codec:
    return Codec(icp)


@pytest.fixture(scope="session")
def didc(node: PeerProcess) -> TextCodec:
    """The codec of the Candid compiler itself, in Rust, through textual forms."""
    return TextCodec(node)
