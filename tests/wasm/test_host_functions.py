"""What runtimes ask their host beside storage: digests, signatures, the store of offchain workers, log lines."""

import re
from pathlib import Path

import pytest

from relaycast_trie.hasher import BLAKE2B_256, KECCAK_256, Hasher, blake2_256
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import build_database, build_root
from relaycast_trie.proofs.statement_proof import generate_proof
from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u32, encode_vec
from relaycast_wasm.host import everything
from relaycast_wasm.host.crypto import ORDER
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from relaycast_wasm.host.host_call import NONE, HostRefusal, RuntimeAborted
from relaycast_wasm.host.memory import U32
from wasm.bare_host import BareHost

SEED = encode_option(encode_bytes(b"//Alice"))
BABE = b"babe"

DIGESTS = {
    # The digests of nothing and of "abc" as other libraries publish them.
    ("keccak_256", b""): "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    ("keccak_512", b"abc"): (
        "18587dc2ea106b9a1563e32b3312421ca164c7f1f07bc922a9c83d77cea3a1e5"
        "d0c69910739025372dc14ac9642629379540c17e2a65b19d77aa511a9d00bb96"
    ),
    ("sha2_256", b"abc"): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ("blake2_128", b""): "cae66941d9efbd404e4d88758ea67670",
    ("blake2_256", b"abc"): "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
    ("twox_64", b"abc"): "990977adf52cbc44",
    ("twox_128", b"abc"): "990977adf52cbc440889329981caa9be",
    ("twox_256", b"abc"): "990977adf52cbc440889329981caa9bef7da5770b2b8a05303b75d95360dd62b",
}


@pytest.mark.parametrize(("name", "data"), DIGESTS)
def test_a_digest_is_given_at_a_place_of_its_own_or_where_the_runtime_says(name: str, data: bytes) -> None:
    host, digest = BareHost(), bytes.fromhex(DIGESTS[name, data])
    assert host.bytes_at(getattr(host, f"hashing_{name}_version_1")(data), len(digest)) == digest
    out = host.at(bytes(len(digest)))
    assert getattr(host, f"hashing_{name}_version_2")(data, out) is None
    assert host.bytes_at(out, len(digest)) == digest


SCHEMES = {"ed25519": (32, 64), "sr25519": (32, 64), "ecdsa": (33, 65)}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_generated_key_signs_what_its_public_key_verifies(scheme: str) -> None:
    host, (public_bytes, signature_bytes) = BareHost(), SCHEMES[scheme]
    call = {name: getattr(host, f"crypto_{scheme}_{name}") for name in ("generate_version_1", "generate_version_2")}
    public = host.bytes_at(call["generate_version_1"](host.at(BABE), SEED), public_bytes)
    out = host.at(bytes(public_bytes))
    call["generate_version_2"](host.at(BABE), SEED, out)
    assert host.bytes_at(out, public_bytes) == public
    listed = getattr(host, f"crypto_{scheme}_public_keys_version_1")(host.at(BABE))
    assert host.bytes_of(listed) == encode_vec([public])
    room = host.room(public_bytes)
    assert getattr(host, f"crypto_{scheme}_public_keys_version_2")(host.at(BABE), room) == public_bytes
    assert host.bytes_of(room) == public
    said = host.bytes_of(getattr(host, f"crypto_{scheme}_sign_version_1")(host.at(BABE), host.at(public), b"message"))
    assert said[:1] == b"\x01"
    signature = said[1:]
    assert len(signature) == signature_bytes
    verifiers = [
        name for name in HOST_FUNCTIONS if re.fullmatch(rf"ext_crypto_{scheme}_(batch_)?verify_version_\d", name)
    ]
    assert len(verifiers) == (2 if scheme == "ed25519" else 3)
    for name in verifiers:
        verify = getattr(host, name.removeprefix("ext_"))
        assert verify(host.at(signature), b"message", host.at(public)) == 1
        assert verify(host.at(signature), b"massage", host.at(public)) == 0
        for at in (0, 31, 40, signature_bytes - 1):
            wrong = signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1 :]
            assert verify(host.at(wrong), b"message", host.at(public)) == 0
        assert verify(host.at(b"\xff" * signature_bytes), b"message", host.at(b"\xff" * public_bytes)) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nobody_signs_with_a_key_that_is_not_there(scheme: str) -> None:
    host, (public_bytes, signature_bytes) = BareHost(), SCHEMES[scheme]
    unknown = bytes(public_bytes)
    assert (
        host.bytes_of(getattr(host, f"crypto_{scheme}_sign_version_1")(host.at(BABE), host.at(unknown), b"")) == b"\x00"
    )
    out = host.at(bytes(signature_bytes))
    assert getattr(host, f"crypto_{scheme}_sign_version_2")(host.at(BABE), host.at(unknown), b"", out) == U32
    assert host.bytes_of(getattr(host, f"crypto_{scheme}_public_keys_version_1")(host.at(BABE))) == b"\x00"


def test_keys_of_one_kind_are_not_those_of_another() -> None:
    host = BareHost()
    public = host.bytes_at(host.crypto_sr25519_generate_version_1(host.at(BABE), SEED), 32)
    assert host.bytes_of(host.crypto_sr25519_sign_version_1(host.at(b"gran"), host.at(public), b"")) == b"\x00"
    assert host.bytes_of(host.crypto_ed25519_public_keys_version_1(host.at(BABE))) == b"\x00"


def test_a_key_without_a_seed_follows_from_the_chain_and_is_another_one_each_time() -> None:
    first, second = BareHost(), BareHost()
    drawn = [
        host.bytes_at(host.crypto_sr25519_generate_version_1(host.at(BABE), b"\x00"), 32) for host in (first, second)
    ]
    assert drawn[0] == drawn[1]
    assert host_key(first) != drawn[0]


def host_key(host: BareHost) -> bytes:
    return host.bytes_at(host.crypto_sr25519_generate_version_1(host.at(BABE), b"\x00"), 32)


def test_a_batch_tells_whether_all_of_its_signatures_held() -> None:
    host = BareHost()
    public = host.bytes_at(host.crypto_ed25519_generate_version_1(host.at(BABE), SEED), 32)
    signature = host.bytes_of(host.crypto_ed25519_sign_version_1(host.at(BABE), host.at(public), b"m"))[1:]
    for message, result in ((b"m", 1), (b"n", 0)):
        host.crypto_start_batch_verify_version_1()
        assert host.crypto_ed25519_batch_verify_version_1(host.at(signature), message, host.at(public)) == result
        host.crypto_ed25519_batch_verify_version_1(host.at(signature), b"m", host.at(public))
        assert host.crypto_finish_batch_verify_version_1() == result
    with pytest.raises(HostRefusal, match="no batch"):
        host.crypto_finish_batch_verify_version_1()
    host.crypto_start_batch_verify_version_1()
    with pytest.raises(HostRefusal, match="open already"):
        host.crypto_start_batch_verify_version_1()


RECOVER = "crypto_secp256k1_ecdsa_recover"


def signed_hash(host: BareHost) -> tuple[bytes, bytes, bytes]:
    """Return a compressed public key, a hash and its signature."""
    public = host.bytes_at(host.crypto_ecdsa_generate_version_1(host.at(BABE), SEED), 33)
    digest = blake2_256(b"message")
    said = host.crypto_ecdsa_sign_prehashed_version_1(host.at(BABE), host.at(public), host.at(digest))
    return public, digest, host.bytes_of(said)[1:]


def test_who_signed_is_recovered_in_three_versions_and_two_forms() -> None:
    host = BareHost()
    public, digest, signature = signed_hash(host)
    ethereum = signature[:64] + bytes([signature[64] + 27])
    for made in (signature, ethereum):
        for version in (1, 2):
            said = getattr(host, f"{RECOVER}_compressed_version_{version}")(host.at(made), host.at(digest))
            assert host.bytes_of(said) == b"\x00" + public
            said = getattr(host, f"{RECOVER}_version_{version}")(host.at(made), host.at(digest))
            assert host.bytes_of(said)[:33] == b"\x00" + public[1:]
            assert len(host.bytes_of(said)) == 65
        out = host.at(bytes(64))
        assert getattr(host, f"{RECOVER}_compressed_version_3")(host.at(made), host.at(digest), out) == 0
        assert host.bytes_at(out, 33) == public
        assert getattr(host, f"{RECOVER}_version_3")(host.at(made), host.at(digest), out) == 0
        assert host.bytes_at(out, 32) == public[1:]
    assert host.crypto_ecdsa_verify_prehashed_version_1(host.at(signature), host.at(digest), host.at(public)) == 1
    assert host.crypto_ecdsa_verify_prehashed_version_1(host.at(signature), host.at(bytes(32)), host.at(public)) == 0


@pytest.mark.parametrize(
    ("signature", "error"),
    [
        (bytes(64) + b"\x04", 1),  # a recovery id is 0 to 3
        (b"\xff" * 64 + b"\x00", 0),  # r and s are below the order of the group
        (bytes(64) + b"\x00", 2),  # nobody signs with r and s of 0
    ],
)
def test_a_signature_that_nobody_made_is_refused_by_its_fault(signature: bytes, error: int) -> None:
    host, digest = BareHost(), blake2_256(b"message")
    said = host.bytes_of(getattr(host, f"{RECOVER}_version_2")(host.at(signature), host.at(digest)))
    assert said == bytes([1, error])
    negative = getattr(host, f"{RECOVER}_version_3")(host.at(signature), host.at(digest), host.at(bytes(64)))
    assert negative - (U32 + 1) == -1 - error


def test_version_1_of_recovery_takes_numbers_beyond_the_order() -> None:
    host, digest = BareHost(), blake2_256(b"message")
    small = (1).to_bytes(32, "big")
    over = (ORDER + 1).to_bytes(32, "big")
    plain, overflowing = small + small + b"\x00", over + over + b"\x00"
    first = host.bytes_of(getattr(host, f"{RECOVER}_version_1")(host.at(plain), host.at(digest)))
    assert host.bytes_of(getattr(host, f"{RECOVER}_version_1")(host.at(overflowing), host.at(digest))) == first
    assert host.bytes_of(getattr(host, f"{RECOVER}_version_2")(host.at(overflowing), host.at(digest))) == b"\x01\x00"


@pytest.mark.parametrize("kind", [1, 2])
def test_offchain_workers_have_a_store_that_compares_before_it_sets(kind: int) -> None:
    host = BareHost()
    assert host.bytes_of(host.offchain_local_storage_get_version_1(kind, b"key")) == b"\x00"
    assert host.offchain_local_storage_read_version_1(kind, b"key", host.room(4), 0) == NONE
    assert host.offchain_local_storage_compare_and_set_version_1(kind, b"key", b"\x01\x04x", b"new") == 0
    assert host.offchain_local_storage_compare_and_set_version_1(kind, b"key", b"\x00", b"value") == 1
    assert host.bytes_of(host.offchain_local_storage_get_version_1(kind, b"key")) == b"\x01\x14value"
    assert host.bytes_of(host.offchain_local_storage_get_version_1(3 - kind, b"key")) == b"\x00"
    room = host.room(3)
    assert host.offchain_local_storage_read_version_1(kind, b"key", room, 1) == 4
    assert host.bytes_of(room) == b"alu"
    host.offchain_local_storage_clear_version_1(kind, b"key")
    assert host.bytes_of(host.offchain_local_storage_get_version_1(kind, b"key")) == b"\x00"
    with pytest.raises(HostRefusal, match="kinds 1 and 2, got 0"):
        host.offchain_local_storage_set_version_1(0, b"key", b"value")


def test_it_answers_as_a_validator_without_a_network() -> None:
    host = BareHost()
    assert host.offchain_is_validator_version_1() == 1
    assert host.bytes_of(host.offchain_network_state_version_1()) == b"\x01"
    assert host.offchain_network_peer_id_version_1(host.at(bytes(38))) == U32
    assert host.bytes_of(host.offchain_http_request_start_version_1(b"GET", b"http://example.org", b"")) == b"\x01"
    assert host.offchain_http_request_start_version_2(b"GET", b"http://example.org", b"") == NONE
    assert host.bytes_of(host.offchain_http_request_add_header_version_1(1, b"a", b"b")) == b"\x01"
    assert host.bytes_of(host.offchain_http_request_write_body_version_1(1, b"", b"\x00")) == b"\x01\x03"
    assert host.offchain_http_request_write_body_version_2(1, b"", b"\x00") == NONE - 2
    ids = encode_vec([b"\x01\x00", b"\x02\x00"])
    assert host.bytes_of(host.offchain_http_response_wait_version_1(ids, b"\x00")) == b"\x08\x02\x02"
    out = host.call.give(b"\xff" * 8)
    host.offchain_http_response_wait_version_2(ids, b"\x00", out)
    assert host.bytes_of(out) == bytes(8)
    assert host.bytes_of(host.offchain_http_response_headers_version_1(1)) == b"\x00"
    assert host.bytes_of(host.offchain_http_response_read_body_version_1(1, b"1234", b"\x00")) == b"\x01\x03"
    host.offchain_set_authorized_nodes_version_1(b"\x00", 1)


def test_transactions_of_offchain_workers_and_what_blocks_index_are_kept() -> None:
    host = BareHost()
    environment = host.call.environment
    assert host.bytes_of(host.offchain_submit_transaction_version_1(b"one")) == b"\x00"
    assert host.offchain_submit_transaction_version_2(b"two") == 0
    assert environment.submitted == [b"one", b"two"]
    host.offchain_index_set_version_1(b"a", b"1")
    host.offchain_index_set_version_1(b"b", b"2")
    host.offchain_index_clear_version_1(b"a")
    assert environment.offchain_index == {b"a": None, b"b": b"2"}
    host.transaction_index_index_version_1(3, 100, host.at(b"h" * 32))
    host.transaction_index_renew_version_1(4, host.at(b"g" * 32))
    assert environment.indexed == [(3, 100, b"h" * 32), (4, 0, b"g" * 32)]


def test_time_is_given_and_goes_on_when_a_worker_sleeps() -> None:
    host = BareHost()
    host.call.environment.timestamp_ms = 1_000
    assert host.offchain_timestamp_version_1() == 1_000
    host.offchain_sleep_until_version_1(5_000)
    host.offchain_sleep_until_version_1(2_000)
    assert host.offchain_timestamp_version_1() == 5_000
    out = host.at(bytes(32))
    host.offchain_random_seed_version_2(out)
    assert host.bytes_at(host.offchain_random_seed_version_1(), 32) != host.bytes_at(out, 32)


def test_what_a_runtime_says_is_kept_and_its_last_error_is_its_panic() -> None:
    host = BareHost()
    host.logging_log_version_1(2, b"runtime::system", b"hello")
    host.misc_print_num_version_1(2**64 - 1)
    host.misc_print_utf8_version_1("grüße".encode())
    host.misc_print_utf8_version_1(b"\xff\xfe")
    host.misc_print_hex_version_1(b"\x01\x02")
    host.logging_log_version_1(0, b"runtime", b"panicked \xff")
    assert host.call.log == [
        "info runtime::system: hello",
        "debug runtime: 18446744073709551615",
        "debug runtime: grüße",
        "debug runtime: 0102",
        "error runtime: panicked �",
    ]
    assert host.call.panic == "panicked �"
    assert host.logging_max_level_version_1() == 3
    with pytest.raises(RuntimeAborted, match=r"^at last$"):
        host.panic_handler_abort_on_panic_version_1(b"at last")
    assert host.wasm_tracing_enabled_version_1(b"") == 0
    assert host.wasm_tracing_enter_span_version_1(b"") == 0
    assert host.wasm_tracing_exit_version_1(0) is None


@pytest.mark.parametrize(("name", "hasher"), [("blake2_256", BLAKE2B_256), ("keccak_256", KECCAK_256)])
def test_roots_of_tries_that_a_runtime_makes_up(name: str, hasher: Hasher) -> None:
    host, pairs = BareHost(), {b"a": b"1" * 40, b"b": b"2", b"": b"3"}
    given = encode_vec(encode_bytes(key) + encode_bytes(value) for key, value in pairs.items())
    items = [b"x" * 50, b"", b"y"]
    listed = encode_vec(map(encode_bytes, items))
    ordered = {encode_compact(index): it for index, it in enumerate(items)}
    for version in StateVersion:
        for kind, data, content in (("root", given, pairs), ("ordered_root", listed, ordered)):
            expected = build_root(content, state_version=version, hasher=hasher)
            function = f"trie_{name}_{kind}_version"
            if version is StateVersion.V0:
                assert host.bytes_at(getattr(host, f"{function}_1")(data), 32) == expected
            assert host.bytes_at(getattr(host, f"{function}_2")(data, int(version)), 32) == expected
            out = host.at(bytes(32))
            getattr(host, f"{function}_3")(data, int(version), out)
            assert host.bytes_at(out, 32) == expected
    with pytest.raises(HostRefusal, match="state version is 0 or 1, got 2"):
        getattr(host, f"trie_{name}_root_version_2")(given, 2)
    with pytest.raises(HostRefusal, match="do not decode"):
        getattr(host, f"trie_{name}_root_version_1")(given[:-1])


@pytest.mark.parametrize("version", list(StateVersion))
def test_a_proof_of_one_value_holds_for_this_value_alone(version: StateVersion) -> None:
    pairs = {bytes([index]) * 4: bytes([index]) * 40 for index in range(20)}
    db, root = build_database(pairs, state_version=version)
    key, value = b"\x07" * 4, b"\x07" * 40
    nodes = generate_proof(db, root, [key])
    host, proof = BareHost(), encode_vec(map(encode_bytes, nodes))
    verify = host.trie_blake2_256_verify_proof_version_2
    assert verify(host.at(root), proof, key, value, int(version)) == 1
    assert verify(host.at(root), proof, key, value[1:], int(version)) == 0
    assert verify(host.at(bytes(32)), proof, key, value, int(version)) == 0
    for left_out in range(len(nodes)):
        fewer = encode_vec(map(encode_bytes, (*nodes[:left_out], *nodes[left_out + 1 :])))
        assert verify(host.at(root), fewer, key, value, int(version)) == 0


def test_what_another_runtime_says_of_itself_is_none_for_what_is_no_runtime() -> None:
    host = BareHost()
    host.call.version_of = lambda code: b"version" if code == b"code" else None
    assert host.bytes_of(host.misc_runtime_version_version_1(b"code")) == b"\x01\x1cversion"
    assert host.bytes_of(host.misc_runtime_version_version_1(b"other")) == b"\x00"
    room = host.room(4)
    assert host.misc_runtime_version_version_2(b"code", room) == 7
    assert host.bytes_of(room) == b"vers"
    assert host.misc_runtime_version_version_2(b"other", room) == NONE


def test_a_cursor_is_handed_over_once_and_only_where_it_fits() -> None:
    host = BareHost()
    assert host.misc_last_cursor_version_1(host.room(8)) == NONE
    host.call.cursor = b"cursor"
    assert host.misc_last_cursor_version_1(host.room(3)) == 6
    room = host.room(6)
    assert host.misc_last_cursor_version_1(room) == 6
    assert host.bytes_of(room) == b"cursor"
    assert host.misc_last_cursor_version_1(room) == NONE


def test_every_group_of_functions_is_loaded() -> None:
    folder = Path(everything.__file__).parent
    declaring = {
        file.stem
        for file in folder.glob("*.py")
        if re.search(r"^    declare\(|^@host_function", file.read_text(), re.MULTILINE)
    }
    assert declaring == {module.__name__.rpartition(".")[2] for module in everything.GROUPS}
    assert all(name.startswith("ext_") and re.search(r"_version_\d$", name) for name in HOST_FUNCTIONS)


def test_lengths_beyond_the_data_are_refused() -> None:
    host = BareHost()
    for data in (b"\x01", b"\x02", b"\x01\xff", b"\x00\x00", encode_u32(9)):
        with pytest.raises(HostRefusal):
            host.crypto_sr25519_generate_version_1(host.at(BABE), data)
