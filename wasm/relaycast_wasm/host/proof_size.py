"""``ext_storage_proof_size_*``: how large the proof of this block is so far (cumulus ``proof-size-hostfunction``)."""

from relaycast_wasm.host.host_call import NONE, HostCall
from relaycast_wasm.host.registry import host_function


@host_function("", "I")
def ext_storage_proof_size_storage_proof_size_version_1(host: HostCall) -> int:
    return NONE if host.recorded_bytes is None else host.recorded_bytes()
