"""``ext_storage_proof_size_*``: how large the proof of this block is so far (cumulus ``proof-size-hostfunction``)."""

from relaycast_wasm.host.host_call import NONE, HostCall
from relaycast_wasm.host.registry import host_function


@host_function("", "I")
def ext_storage_proof_size_storage_proof_size_version_1(host: HostCall) -> int:
    """Return the bytes of the nodes and values that were read so far; all ones where no proof is recorded."""
    recorded = host.overlay.proof_bytes()
    return NONE if recorded is None else recorded
