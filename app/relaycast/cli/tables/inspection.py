"""How ``relaycast pov inspect`` prints a block."""

import msgspec

from relaycast.pov.inspection import UNUSED, Inspection, MessageCount
from relaycast.terminal import console, counted, print_table, say


def print_inspection_json(found: Inspection) -> None:
    """Print everything as one JSON object."""
    print(msgspec.json.encode(found).decode())


def print_inspection(found: Inspection) -> None:
    """Print the block, the parts of its proof, its messages, and what other encodings would save."""
    out = console()
    whose = "a parachain that its keys do not name" if found.para_id is None else f"parachain {found.para_id}"
    print(f"block     #{found.number:,} {found.hash}, of {whose}")
    print(f"built on  relay block {found.relay_parent_number:,}, state {found.relay_state_root}")
    print(f"inherent  {found.form}{_descendants(found.descendants)}")
    print()
    _print_sizes(found)
    print()
    parts = [(it.part, it.name, it.nodes, it.proof_bytes) for it in found.parts]
    whole = ("all of it", "", found.relay_proof_nodes, found.relay_proof_bytes)
    rows = [(part, name, f"{nodes:,}", f"{size:,}", _share(size, found)) for part, name, nodes, size in [*parts, whole]]
    print_table(out, ("relay proof", "for", "nodes", "bytes", "share"), rows, right=("nodes", "bytes", "share"))
    print()
    for count in found.messages:
        say(_messages(count))
    print()
    say(_saved(found))
    unused = sum(it.proof_bytes for it in found.parts if it.part == UNUSED)
    if unused:
        out.print(f"the root does not lead to {unused:,} bytes of the proof", style="red")


def _print_sizes(found: Inspection) -> None:
    encoding = found.inherent_bytes - found.relay_proof_bytes
    lines = {
        "header": found.header_bytes,
        "relay proof": found.relay_proof_bytes,
        "rest of the inherent": encoding,
        counted(found.other_extrinsics, "other extrinsic"): found.other_extrinsic_bytes,
    }
    assert sum(lines.values()) == found.block_bytes
    for name, size in lines.items():
        print(f"{name:<22}{size:>12,} bytes")
    share = f"{found.block_bytes / found.max_pov_size:.2%} of the largest PoV, " if found.max_pov_size else ""
    print(f"{'block':<22}{found.block_bytes:>12,} bytes, {share}{found.block_zstd_bytes:,} compressed")


def _share(size: int, found: Inspection) -> str:
    return f"{size / found.relay_proof_bytes:.1%}" if found.relay_proof_bytes else "-"


def _messages(count: MessageCount) -> str:
    sender = "from the relay chain" if count.sender is None else f"from parachain {count.sender}"
    full = f"{counted(count.full, 'message')} of {count.full_bytes:,} bytes"
    return f"messages  {sender}: {full} in full, {count.hashed:,} as hashes ({count.hashed_bytes:,} bytes)"


def _saved(found: Inspection) -> str:
    if found.compact_bytes is None:
        why = "the relay proof has no compact form: nodes are missing, or stand at too many places"
        return f"{why}; compressed it has {found.zstd_bytes:,} bytes"
    saved = found.relay_proof_bytes - found.compact_bytes
    return (
        f"As a compact proof the relay proof would have {found.compact_bytes:,} bytes ({saved:,} less), compressed "
        f"{found.zstd_bytes:,} as it is and {found.compact_zstd_bytes:,} as a compact proof."
    )


def _descendants(count: int) -> str:
    return f", {counted(count, 'descendant')} of the relay parent" if count else ""
