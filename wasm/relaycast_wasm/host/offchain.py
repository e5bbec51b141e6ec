"""``ext_offchain_*``, ``ext_offchain_index_*`` and ``ext_transaction_index_*``: what does not touch the state.

Answers are those of a validator without a network: no peer, no request that leaves, its own store and pool.
"""

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_option
from relaycast_wasm.host.host_call import NONE, HostCall, HostRefusal
from relaycast_wasm.host.memory import U32
from relaycast_wasm.host.registry import host_function

OK, FAILED = b"\x00", b"\x01"
INVALID_REQUEST = 3
"""``HttpError::Invalid``: there is no such request. Version 2 gives it negative."""

INVALID_STATUS = 2
"""``HttpRequestStatus::Invalid``; in version 2 it is the number 0."""


@host_function("", "i")
def ext_offchain_is_validator_version_1(_host: HostCall) -> int:
    return 1


@host_function("I", "I")
def ext_offchain_submit_transaction_version_1(host: HostCall, data: int) -> int:
    host.environment.submitted.append(host.read(data))
    return host.give(OK)


@host_function("I", "i")
def ext_offchain_submit_transaction_version_2(host: HostCall, data: int) -> int:
    host.environment.submitted.append(host.read(data))
    return 0


@host_function("", "I")
def ext_offchain_network_state_version_1(host: HostCall) -> int:
    return host.give(FAILED)


@host_function("i", "i")
def ext_offchain_network_peer_id_version_1(_host: HostCall, _out: int) -> int:
    return NONE & U32


@host_function("", "I")
def ext_offchain_timestamp_version_1(host: HostCall) -> int:
    return host.environment.timestamp_ms


@host_function("I")
def ext_offchain_sleep_until_version_1(host: HostCall, deadline: int) -> None:
    host.environment.timestamp_ms = max(host.environment.timestamp_ms, deadline)


@host_function("", "i")
def ext_offchain_random_seed_version_1(host: HostCall) -> int:
    return host.give_at(host.environment.random_seed())


@host_function("i")
def ext_offchain_random_seed_version_2(host: HostCall, out: int) -> None:
    host.memory.write(out, host.environment.random_seed())


@host_function("iII")
def ext_offchain_local_storage_set_version_1(host: HostCall, kind: int, key: int, value: int) -> None:
    host.environment.local_storage[_kind(kind), host.read(key)] = host.read(value)


@host_function("iI")
def ext_offchain_local_storage_clear_version_1(host: HostCall, kind: int, key: int) -> None:
    host.environment.local_storage.pop((_kind(kind), host.read(key)), None)


@host_function("iIII", "i")
def ext_offchain_local_storage_compare_and_set_version_1(
    host: HostCall, kind: int, key: int, old_value: int, new_value: int
) -> int:
    place = _kind(kind), host.read(key)
    expected, wanted = _optional_bytes(host.read(old_value)), host.read(new_value)
    if host.environment.local_storage.get(place) != expected:
        return 0
    host.environment.local_storage[place] = wanted
    return 1


@host_function("iI", "I")
def ext_offchain_local_storage_get_version_1(host: HostCall, kind: int, key: int) -> int:
    value = host.environment.local_storage.get((_kind(kind), host.read(key)))
    return host.give(encode_option(None if value is None else encode_bytes(value)))


@host_function("iIIi", "I")
def ext_offchain_local_storage_read_version_1(host: HostCall, kind: int, key: int, out: int, offset: int) -> int:
    value = host.environment.local_storage.get((_kind(kind), host.read(key)))
    return NONE if value is None else host.fill(out, value[offset:], partly=True)


@host_function("III", "I")
def ext_offchain_http_request_start_version_1(host: HostCall, method: int, uri: int, meta: int) -> int:
    host.text(method), host.text(uri), host.read(meta)
    return host.give(FAILED)


@host_function("III", "I")
def ext_offchain_http_request_start_version_2(host: HostCall, method: int, uri: int, meta: int) -> int:
    host.text(method), host.text(uri), host.read(meta)
    return NONE


@host_function("iII", "I")
def ext_offchain_http_request_add_header_version_1(host: HostCall, _request: int, name: int, value: int) -> int:
    host.text(name), host.text(value)
    return host.give(FAILED)


@host_function("iII", "I")
def ext_offchain_http_request_add_header_version_2(host: HostCall, _request: int, name: int, value: int) -> int:
    host.text(name), host.text(value)
    return NONE


@host_function("iII", "I")
def ext_offchain_http_request_write_body_version_1(host: HostCall, _request: int, chunk: int, deadline: int) -> int:
    host.read(chunk), host.read(deadline)
    return host.give(FAILED + bytes([INVALID_REQUEST]))


@host_function("iII", "I")
def ext_offchain_http_request_write_body_version_2(host: HostCall, _request: int, chunk: int, deadline: int) -> int:
    host.read(chunk), host.read(deadline)
    return NONE + 1 - INVALID_REQUEST


@host_function("II", "I")
def ext_offchain_http_response_wait_version_1(host: HostCall, ids: int, deadline: int) -> int:
    asked = _request_ids(host.read(ids))
    host.read(deadline)
    return host.give(encode_compact(asked) + bytes([INVALID_STATUS]) * asked)


@host_function("III")
def ext_offchain_http_response_wait_version_2(host: HostCall, ids: int, deadline: int, out: int) -> None:
    asked = _request_ids(host.read(ids))
    host.read(deadline)
    if out >> 32 not in {asked, 4 * asked}:
        raise HostRefusal(f"a status for each of {asked} requests is to be written")
    host.fill(out, bytes(out >> 32))


@host_function("i", "I")
def ext_offchain_http_response_headers_version_1(host: HostCall, _request: int) -> int:
    return host.give(b"\x00")


@host_function("iiI", "I")
def ext_offchain_http_response_header_name_version_1(_host: HostCall, _request: int, _index: int, _out: int) -> int:
    return NONE


@host_function("iiI", "I")
def ext_offchain_http_response_header_value_version_1(_host: HostCall, _request: int, _index: int, _out: int) -> int:
    return NONE


@host_function("iII", "I")
def ext_offchain_http_response_read_body_version_1(host: HostCall, _request: int, buffer: int, deadline: int) -> int:
    host.read(buffer), host.read(deadline)
    return host.give(FAILED + bytes([INVALID_REQUEST]))


@host_function("iII", "I")
def ext_offchain_http_response_read_body_version_2(host: HostCall, _request: int, buffer: int, deadline: int) -> int:
    host.read(buffer), host.read(deadline)
    return NONE + 1 - INVALID_REQUEST


@host_function("Ii")
def ext_offchain_set_authorized_nodes_version_1(host: HostCall, nodes: int, _authorized_only: int) -> None:
    host.read(nodes)


@host_function("II")
def ext_offchain_index_set_version_1(host: HostCall, key: int, value: int) -> None:
    host.environment.offchain_index[host.read(key)] = host.read(value)


@host_function("I")
def ext_offchain_index_clear_version_1(host: HostCall, key: int) -> None:
    host.environment.offchain_index[host.read(key)] = None


@host_function("iii")
def ext_transaction_index_index_version_1(host: HostCall, extrinsic: int, size: int, context_hash: int) -> None:
    host.environment.indexed.append((extrinsic, size, host.memory.read(context_hash, 32)))


@host_function("ii")
def ext_transaction_index_renew_version_1(host: HostCall, extrinsic: int, context_hash: int) -> None:
    host.environment.indexed.append((extrinsic, 0, host.memory.read(context_hash, 32)))


def _kind(kind: int) -> int:
    if kind not in {1, 2}:
        raise HostRefusal(f"the store of offchain workers has the kinds 1 and 2, got {kind}")
    return kind


def _optional_bytes(data: bytes) -> bytes | None:
    reader = ScaleReader(data)
    try:
        value = reader.bytes_() if reader.u8() else None
        reader.done()
    except CodecError as error:
        raise HostRefusal(f"an optional value does not decode: {error}") from None
    return value


def _request_ids(data: bytes) -> int:
    """Return how many ids of requests there are, two bytes each."""
    reader = ScaleReader(data)
    try:
        count = reader.length(2)
        reader.take(2 * count)
        reader.done()
    except CodecError as error:
        raise HostRefusal(f"ids of requests do not decode: {error}") from None
    return count
