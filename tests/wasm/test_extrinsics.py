"""Transactions are refused before they are made where a runtime is not known well enough to make them."""

from dataclasses import replace

import pytest

from relaycast_wasm.metadata.model import ExtrinsicFormat, Metadata, TransactionExtension, TypeRef
from relaycast_wasm.metadata.of_runtime import metadata_of
from relaycast_wasm.transactions.extrinsics import TransactionWriter
from relaycast_wasm.transactions.signing import Signer
from wasm.real_chains import ALICE, BOB, runtime_of

ALICES_KEY = "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d"
ALICES_ED25519_KEY = "88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee"


@pytest.fixture(scope="module")
def metadata() -> Metadata:
    return metadata_of(runtime_of("westend"))


def writer(metadata: Metadata) -> TransactionWriter:
    return TransactionWriter(metadata, runtime_of("westend").version, bytes(32))


def test_alice_has_the_keys_that_everybody_knows() -> None:
    assert Signer.dev("Alice").public.hex() == ALICES_KEY
    assert Signer.dev("Alice", "ed25519").public.hex() == ALICES_ED25519_KEY


def test_an_ed25519_transaction_is_the_same_each_time(metadata: Metadata) -> None:
    signer = Signer.dev("Alice", "ed25519")
    tx = writer(metadata)
    first, second = (tx.sign(tx.remark(b"x" * 300), signer, nonce=3, tip=5) for _ in range(2))
    assert first == second
    assert first != tx.sign(tx.remark(b"x" * 300), signer, nonce=4, tip=5)


def test_a_call_that_the_runtime_does_not_have_is_named(metadata: Metadata) -> None:
    with pytest.raises(ValueError, match=r"the runtime has no call Balances\.burn"):
        writer(metadata).call("Balances", "burn")


def test_an_extension_that_is_not_known_is_named(metadata: Metadata) -> None:
    later = metadata_of(runtime_of("text"))
    number = next(index for index in range(len(later.types or ())))
    unknown = TransactionExtension("PaysInKind", TypeRef("u32", number), TypeRef("u32", number))
    changed = replace(later, extrinsic=ExtrinsicFormat((4,), (unknown,)))
    with pytest.raises(ValueError, match="the runtime's signed extension PaysInKind is not known here"):
        writer(changed).sign(b"\x00\x00", ALICE, nonce=0)


def test_a_runtime_that_takes_another_format_is_refused(metadata: Metadata) -> None:
    with pytest.raises(ValueError, match="transactions of format 4 are written here"):
        writer(replace(metadata, extrinsic=ExtrinsicFormat((5,), ())))


def test_an_account_is_written_as_the_runtime_of_its_time_does(metadata: Metadata) -> None:
    old = replace(metadata, version=9)
    later = replace(metadata, version=13)
    lengths = [len(writer(it).address(BOB.public)) for it in (old, metadata, later)]
    assert lengths == [33, 32, 33]
    assert writer(old).address(BOB.public)[0] == 0xFF
