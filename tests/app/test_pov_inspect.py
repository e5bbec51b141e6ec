"""``relaycast pov inspect``: a parachain block taken apart, from hexadecimal, a file or a node."""

import json
import random
from pathlib import Path

import pytest

import relaycast as rc
from command_line import Command
from relaycast.pov.block_input import read_block
from relaycast.pov.inspection import CHANNELS, OTHER, PUBLISHERS, STATIC, TOP, UNUSED, inspect_block
from relaycast.pov.parachain_block import RawBlock, read_relay_data
from relaycast.scenario.files import load_scenario
from relaycast.simulation.simulation import Simulation
from relaycast_collator import BlockBuilt
from relaycast_collator.parachain import ParachainBlock
from relaycast_node.rpc.node_face import DIALECTS
from relaycast_pallets.frame.state import State
from relaycast_pallets.messaging.inbound_message import InboundMessagesData
from relaycast_pallets.parachain_system.pallet import PersistedValidationData
from relaycast_trie import Branch, Leaf, blake2_256
from relaycast_trie.node_codec import encode_node
from relaycast_trie.scale import encode_bytes, encode_compact, encode_u32, encode_vec

SCENARIO = """
blocks = 6
[[parachains]]
id = 2000
publish = { keys = 12 }
[[parachains]]
id = 1000
publish = { keys = 3 }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }, { publisher = 1000 }]
messages = { downward = 3_000, horizontal = 2_000, message_bytes = 700, senders = [2100, 2101] }
"""


def built(tmp_path: Path, blocks: int = 6) -> ParachainBlock:
    """Return the last block of a subscriber that also gets messages."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    simulation = Simulation.prepare(load_scenario(str(file)))
    found: list[ParachainBlock] = []
    simulation.network.chains.listeners.append(
        lambda fact: found.append(fact.block) if isinstance(fact, BlockBuilt) and fact.para_id == 3000 else None
    )
    assert len(list(simulation.blocks(last=blocks))) == blocks
    return found[-1]


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> ParachainBlock:
    return built(tmp_path_factory.mktemp("scenario"))


def encoded(block: ParachainBlock) -> bytes:
    """Return the block as a node stores it: header and extrinsics."""
    inherent = RawBlock(block.header, (extrinsic(block),))
    return inherent.header.encode() + encode_vec(map(encode_bytes, inherent.extrinsics))


def extrinsic(block: ParachainBlock) -> bytes:
    """Return the inherent of the block."""
    return inherent_of(block, descendants=b"\x00\x00", messages=block.inherent.messages.encode())


def inherent_of(block: ParachainBlock, *, descendants: bytes, messages: bytes, version: int = 5) -> bytes:
    """Return ``set_validation_data`` as one of cumulus' versions writes it."""
    nodes = encode_vec(map(encode_bytes, block.inherent.relay_chain_state))
    return bytes([version, 31, 0]) + block.inherent.validation_data.encode() + nodes + descendants + messages


def in_full(messages: InboundMessagesData) -> bytes:
    """Return messages as older versions hold them: a list, and a map from sender to list."""
    senders = sorted({it.sender for it in messages.horizontal.full if it.sender is not None})
    channels = [
        sender.encode()
        + encode_vec(
            encode_u32(it.sent_at) + encode_bytes(it.data) for it in messages.horizontal.full if it.sender == sender
        )
        for sender in senders
    ]
    return encode_vec(it.encode() for it in messages.downward.full) + encode_vec(channels)


def test_every_byte_of_the_block_and_of_its_relay_proof_is_in_one_part(block: ParachainBlock) -> None:
    found = inspect_block(RawBlock.decode(encoded(block)))
    assert found is not None
    assert (found.para_id, found.number) == (3000, block.header.number)
    assert found.hash == f"0x{block.header.hash.hex()}"
    assert found.block_bytes == len(encoded(block))
    assert found.header_bytes + found.inherent_bytes + found.other_extrinsic_bytes == found.block_bytes
    assert sum(it.proof_bytes for it in found.parts) == found.relay_proof_bytes == block.inherent.proof_bytes
    assert sum(it.nodes for it in found.parts) == found.relay_proof_nodes
    assert {it.part for it in found.parts} == {STATIC, CHANNELS, TOP, PUBLISHERS}
    assert [it.name for it in found.parts if it.part == PUBLISHERS] == ["1000", "2000"]
    assert found.compact_bytes is not None
    assert found.compact_bytes < found.relay_proof_bytes


def test_messages_are_counted_by_sender(block: ParachainBlock) -> None:
    found = inspect_block(RawBlock.decode(encoded(block)))
    assert found is not None
    downward, horizontal = block.inherent.downward_messages, block.inherent.horizontal_messages
    assert [it.sender for it in found.messages] == [None, 2100, 2101]
    assert found.messages[0].full_bytes == downward.full_bytes > 0
    assert sum(it.full_bytes for it in found.messages[1:]) == horizontal.full_bytes > 0


@pytest.mark.parametrize("version", [4, 5])
def test_the_inherent_is_found_in_every_form_that_cumulus_gave_it(block: ParachainBlock, version: int) -> None:
    messages, header = block.inherent.messages, encode_vec([block.header.encode()])
    forms = {
        "messages in full": (b"", in_full(messages)),
        "abridged messages": (b"", messages.encode()),
        "abridged messages, relay parent descendants": (header, messages.encode()),
        "abridged messages, relay parent descendants, collator peer": (header + b"\x01\x04x", messages.encode()),
    }
    for form, (descendants, encoded_messages) in forms.items():
        given = read_relay_data(inherent_of(block, descendants=descendants, messages=encoded_messages, version=version))
        assert given is not None
        assert given.form == form
        assert given.messages.downward.full == messages.downward.full
        assert sorted(it.data for it in given.messages.horizontal.full) == sorted(
            it.data for it in messages.horizontal.full
        )
        assert len(given.descendants) == (descendants != b"")


def test_other_extrinsics_and_broken_inherents_are_no_relay_data(block: ParachainBlock) -> None:
    whole = extrinsic(block)
    chance = random.Random(1)
    assert read_relay_data(b"") is None
    assert read_relay_data(b"\x04\x02\x00\x0bsome time") is None
    assert read_relay_data(b"\x84" + whole[1:]) is None  # signed
    assert read_relay_data(whole + b"\x00") is None
    for cut in chance.sample(range(len(whole)), 40):
        assert read_relay_data(whole[:cut]) is None


def test_what_the_root_does_not_lead_to_is_unused(block: ParachainBlock) -> None:
    stray, again = b"a node of nothing", min(block.inherent.relay_chain_state)
    nodes = [*block.inherent.relay_chain_state, stray, again]
    given = bytes([4, 1, 0]) + block.inherent.validation_data.encode() + encode_vec(map(encode_bytes, nodes))
    found = inspect_block(RawBlock(block.header, (given + b"\x00\x00" + block.inherent.messages.encode(),)))
    assert found is not None
    (unused,) = [it for it in found.parts if it.part == UNUSED]
    assert (unused.nodes, unused.proof_bytes) == (2, len(stray) + len(again))
    assert sum(it.proof_bytes for it in found.parts) == found.relay_proof_bytes


def answer_of(block: ParachainBlock) -> dict[str, object]:
    """Return the answer of ``chain_getBlock``."""
    header = block.header
    json_header = {
        "parentHash": f"0x{header.parent_hash.hex()}",
        "number": hex(header.number),
        "stateRoot": f"0x{header.state_root.hex()}",
        "extrinsicsRoot": f"0x{header.extrinsics_root.hex()}",
        "digest": {"logs": [f"0x{it.encode().hex()}" for it in header.digest]},
    }
    return {"block": {"header": json_header, "extrinsics": [f"0x{encode_bytes(extrinsic(block)).hex()}"]}}


def test_a_block_comes_as_hex_as_bytes_and_as_json(relaycast: Command, block: ParachainBlock, tmp_path: Path) -> None:
    (tmp_path / "block.scale").write_bytes(encoded(block))
    (tmp_path / "block.hex").write_text(f"0x{encoded(block).hex()}\n")
    (tmp_path / "block.json").write_text(json.dumps(answer_of(block)))
    (tmp_path / "answer.json").write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer_of(block)}))
    found = [
        relaycast("pov", "inspect", source, "--json").json
        for source in (f"0x{encoded(block).hex()}", "block.scale", "block.hex", "block.json", "answer.json")
    ]
    assert all(it == found[0] for it in found)
    assert found[0]["para_id"] == 3000
    said = relaycast("pov", "inspect", "block.json").out
    assert "of parachain 3000" in said
    assert "from parachain 2101" in said


@pytest.mark.parametrize("opening", [b"{", b" {", b"0x", b"\n0x"])
def test_a_block_whose_parent_hash_begins_as_text_does_is_no_text(
    block: ParachainBlock, tmp_path: Path, opening: bytes
) -> None:
    data = opening + encoded(block)[len(opening) :]
    (tmp_path / "block.scale").write_bytes(data)
    assert read_block(str(tmp_path / "block.scale")).header.parent_hash.startswith(opening)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "0 bytes that are no block"),
        (b"\x00" * 40, "that are no block"),
        (b"{", "JSON"),
        (b"{}", "an object of 0 members"),
        (b'{"header": {}, "extrinsics": []}', "no 'digest'"),
        (b'{"header": 1, "extrinsics": []}', "a header"),
        (b'{"header": {}, "extrinsics": [1]}', "extrinsics[0]"),
        (b'{"header": {}, "extrinsics": ["0x0"]}', "extrinsics[0]"),
        (b'{"header": {}, "extrinsics": ["0x0801"]}', "its length in front"),
        (b"0xzz", "hexadecimal"),
    ],
)
def test_what_is_no_block_is_refused_in_one_line(relaycast: Command, tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "block").write_bytes(content)
    ended = relaycast("pov", "inspect", "block")
    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("\n") == 1


def test_a_proof_whose_nodes_stand_at_too_many_places_is_not_called_broken(
    relaycast: Command, block: ParachainBlock, tmp_path: Path
) -> None:
    """Thirty branches, each with the next one sixteen times: as a compact proof it would have 16^30 nodes."""
    nodes = [encode_node(Leaf(b"\1", bytes(40)))]
    for _ in range(30):
        nodes.append(encode_node(Branch(b"", (blake2_256(nodes[-1]),) * 16, None)))
    root = blake2_256(nodes[-1])
    relay = encode_bytes(b"") + encode_u32(1) + root + encode_u32(5 << 20) + encode_vec(map(encode_bytes, nodes))
    inherent = b"\x04\x01\x00" + relay + bytes(2)
    (tmp_path / "block").write_bytes(block.header.encode() + encode_vec([encode_bytes(inherent)]))
    ended = relaycast("pov", "inspect", "block")
    assert ended.code == 0
    assert "stand at too many places" in ended.out


def test_a_block_without_the_inherent_is_refused(relaycast: Command, block: ParachainBlock, tmp_path: Path) -> None:
    (tmp_path / "block").write_bytes(block.header.encode() + encode_compact(0))
    ended = relaycast("pov", "inspect", "block")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "without set_validation_data" in ended.err


def test_a_node_that_is_not_there_is_refused_in_one_line(relaycast: Command) -> None:
    ended = relaycast("pov", "inspect", "http://127.0.0.1:9/")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert (
        ended.err == "relaycast: http://127.0.0.1:9/: got Connection refused, expected a node that answers JSON-RPC\n"
    )
    assert relaycast("pov", "inspect", "0x00", "--at", "1").code == 2


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_a_node_without_legacy_methods_is_asked_by_archive(
    scheme: str, monkeypatch: pytest.MonkeyPatch, relaycast: Command
) -> None:
    found = []
    for dialect in ("legacy", "new"):
        monkeypatch.setitem(DIALECTS, "all", DIALECTS[dialect])
        with rc.serve("oracle") as chains:
            chains.new_block(5)
            url = f"{scheme}{chains.parachain_url(3000).removeprefix('ws')}"
            ended = [relaycast("pov", "inspect", url, "--json", *at) for at in ((), ("--at", "3"), ("--at", "99"))]
            found.append([(it.code, it.out, it.err.replace(url, "URL")) for it in ended])
            known = json.loads(ended[1].out)["hash"]
            assert relaycast("pov", "inspect", url, "--json", "--at", known).out == ended[1].out
    assert found[0][1:] == found[1][1:]
    newest, final = (json.loads(it[0][1])["number"] for it in found)
    assert 0 < final < newest == 5, "archive_v1 knows which block is final, not which is the best"
    assert [code for code, _, _ in found[0]] == [0, 0, 2]
    assert found[0][2][2] == "relaycast: URL: got no block 99, expected a block that the node has\n"


def test_a_node_without_either_method_is_refused(monkeypatch: pytest.MonkeyPatch, relaycast: Command) -> None:
    monkeypatch.setitem(DIALECTS, "all", ())
    with rc.serve("oracle") as chains:
        ended = relaycast("pov", "inspect", chains.http_url)
    assert ended.code == 2
    assert (
        "got no method archive_v1_finalizedHeight, expected a node with chain_getBlock, or with archive_v1" in ended.err
    )


def test_keys_that_are_not_known_have_a_part_of_their_own(block: ParachainBlock) -> None:
    state = State({b"something else": bytes(60), b"another": bytes(60)})
    data = PersistedValidationData(b"", 1, state.root)
    nodes = encode_vec(map(encode_bytes, state.prove_read(state.root, [b"something else"])))
    given = bytes([4, 1, 0]) + data.encode() + nodes + b"\x00\x00" + block.inherent.messages.encode()
    found = inspect_block(RawBlock(block.header, (given,)))
    assert found is not None
    assert found.para_id is None
    assert {it.part for it in found.parts} >= {OTHER}


def test_a_block_of_asset_hub_is_taken_apart() -> None:
    from wasm.test_asset_hub import Network  # noqa: PLC0415 - a runtime of several megabytes

    network = Network()
    network.next_block()
    built = network.next_block()
    data = built.block.header.encode() + encode_vec(built.block.extrinsics)
    block = RawBlock.decode(data)
    found = inspect_block(block)
    assert found is not None
    assert (found.para_id, found.relay_parent_number) == (1000, built.relay_parent.number)
    assert found.relay_state_root == f"0x{built.relay_parent.state_root.hex()}"
    assert found.block_bytes == len(data)
    assert sum(it.proof_bytes for it in found.parts) == found.relay_proof_bytes > 0
    assert {it.part for it in found.parts} <= {STATIC, CHANNELS, TOP, OTHER}
    assert found.other_extrinsics == len(built.block.extrinsics) - 1
