"""``ext_misc_*`` beside printing: what another runtime says of itself, and where the last removal stopped."""

from relaycast_trie.scale import encode_bytes, encode_option
from relaycast_wasm.host.host_call import NONE, HostCall
from relaycast_wasm.host.registry import host_function


@host_function("I", "I")
def ext_misc_runtime_version_version_1(host: HostCall, code: int) -> int:
    version = host.version_of(host.read(code))
    return host.give(encode_option(None if version is None else encode_bytes(version)))


@host_function("II", "I")
def ext_misc_runtime_version_version_2(host: HostCall, code: int, out: int) -> int:
    version = host.version_of(host.read(code))
    return NONE if version is None else host.fill(out, version, partly=True)


@host_function("I", "I")
def ext_misc_last_cursor_version_1(host: HostCall, out: int) -> int:
    if host.cursor is None:
        return NONE
    length = host.fill(out, host.cursor)
    if length <= out >> 32:
        host.cursor = None
    return length
