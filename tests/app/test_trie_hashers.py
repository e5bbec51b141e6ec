"""Tries under other hash functions on the command line: other roots, the same shape and the same bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from blake3 import blake3
from Crypto.Hash import keccak

from command_line import Command, Refused, Written

PAIRS = [[f"0x{index:02x}{index * 7 % 256:02x}", f"0x{bytes([index] * (index % 50)).hex()}"] for index in range(90)]

DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "keccak-256": lambda data: keccak.new(digest_bits=256, data=data).digest(),
    "blake3": lambda data: blake3(data).digest(),
}


def shape(node: Any) -> tuple[str, str, int]:
    return node.get("path", ""), node["kind"], node["node_bytes"]


@pytest.mark.parametrize("hasher", DIGESTS)
def test_every_node_of_a_trie_is_named_by_its_hash(relaycast: Command, file: Written, hasher: str) -> None:
    picture = relaycast("trie", "show", "--hasher", hasher, "--json", file(PAIRS)).json
    usual = relaycast("trie", "show", "--json", file(PAIRS)).json
    assert list(map(shape, picture["nodes"])) == list(map(shape, usual["nodes"]))
    assert picture["totals"] == usual["totals"], "hashes have 32 bytes under each function: no size changes"
    assert picture["roots"] == [relaycast("trie", "root", "--hasher", hasher, file(PAIRS)).out.strip()]
    assert not {node["hash"] for node in picture["nodes"] if "hash" in node} & {
        node["hash"] for node in usual["nodes"] if "hash" in node and node["kind"] != "value"
    }


@pytest.mark.parametrize(("hasher", "digest"), DIGESTS.items())
def test_the_hash_is_that_of_the_function(
    relaycast: Command, file: Written, hasher: str, digest: Callable[[bytes], bytes]
) -> None:
    value = bytes(40)
    leaf = bytes.fromhex("22" + "01") + digest(value)  # a leaf of version 1: two nibbles of key, the hash of the value
    root = relaycast("trie", "root", "--hasher", hasher, file([["0x01", f"0x{value.hex()}"]])).out
    assert root == f"0x{digest(leaf).hex()}\n"
    assert relaycast("trie", "root", "--hasher", hasher, file([])).out == f"0x{digest(bytes(1)).hex()}\n"
    (empty,) = relaycast("trie", "show", "--hasher", hasher, "--json", file([])).json["nodes"]
    assert (empty["kind"], empty["hash"]) == ("empty", f"0x{digest(bytes(1)).hex()}")


def test_the_usual_hasher_may_be_named(relaycast: Command, file: Written) -> None:
    for verb in ("root", "show"):
        assert (
            relaycast("trie", verb, file(PAIRS)).out
            == relaycast("trie", verb, "--hasher", "blake2b-256", file(PAIRS)).out
        )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("root", "--hasher", "keccak-256", "--engine", "array", "f"),
            "--engine: got array with keccak-256, expected plain",
        ),
        (
            ("root", "--hasher", "keccak", "f"),
            'trie root: Invalid value "keccak" for --hasher. Choose from: "blake2b-256"',
        ),
        (("show", "--hasher", "sha", "f"), 'trie show: Invalid value "sha" for --hasher.'),
    ],
)
def test_hashers_that_do_not_fit_are_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert refused("trie", *arguments).startswith(line)
