"""``ext_storage_*``: the top trie of the state (see ``child_storage`` for the others)."""

from relaycast_trie.scale import encode_bytes, encode_option
from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.registry import host_function


@host_function("I", "I")
def ext_storage_get_version_1(host: HostCall, key: int) -> int:
    value = host.overlay.get(host.read(key))
    return host.give(encode_option(None if value is None else encode_bytes(value)))
