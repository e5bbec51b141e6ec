"""Work that either engine can do, handed to the one that suits its size.

This module stands on top of both engines; no other module of this room imports it. The array engine, and with it numpy
and the compiler, is imported by the call that needs it. ``attach`` gives ``StorageProof`` its ``verify_many`` and
``bulk``.
"""

from collections.abc import Iterable, Mapping

from relaycast_trie.engine import (
    ARRAY_FROM,
    DECODES,
    ENCODES,
    READS,
    ROOTS,
    VERIFIES,
    Engine,
    check_engine,
    pays_in_arrays,
    takes_array,
)
from relaycast_trie.exceptions import ProofError
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import Pairs, build_root
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_trie.proofs.verify import VerifiedProof


def trie_root(pairs: Pairs, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto") -> bytes:
    """Return the Blake2b-256 root of the trie that holds ``pairs``; if a key repeats, its last value wins."""
    state_version = StateVersion(state_version)
    known = pairs if isinstance(pairs, Mapping) else dict(pairs)
    check_engine(engine)
    if engine == "array" or (engine == "auto" and pays_in_arrays(ROOTS, len(known))):
        from relaycast_trie.array.root import root_of  # noqa: PLC0415 - loads the compiler

        return root_of(known, state_version)
    if takes_array(engine, len(known)):
        from relaycast_trie.array.array_trie import ArrayTrie  # noqa: PLC0415 - loads the compiler

        return ArrayTrie.from_pairs(known, state_version=state_version).root
    return build_root(known, state_version=state_version)


def verify_many(
    roots: Iterable[bytes],
    proofs: Iterable[StorageProof],
    keys: Iterable[Iterable[bytes]],
    *,
    strict: bool = False,
    engine: Engine = "auto",
) -> list[VerifiedProof | ProofError]:
    """Verify many proofs in one call; return for each its verified values, or the error that ``verify`` raises.

    Both engines return the same results. Proofs that an ``ArrayTrie`` made always go to the array engine unless
    ``engine`` is ``"plain"`` or its kernels would have to be compiled first.
    """
    given = list(proofs)
    in_arrays = any(type(proof) is not StorageProof for proof in given)
    if takes_array(engine, ARRAY_FROM if in_arrays else sum(map(len, given)), work=VERIFIES):
        from relaycast_trie.array import array_proofs  # noqa: PLC0415 - loads the compiler

        return array_proofs.verify_many(roots, given, keys, strict=strict)
    results: list[VerifiedProof | ProofError] = []
    for root, proof, wanted in zip(roots, given, keys, strict=True):
        try:
            results.append(proof.verify(root, wanted, strict=strict))
        except ProofError as error:
            results.append(error.as_value())
    return results


def warm_up_for(engine: Engine) -> None:
    """Load the kernels if ``engine`` is ``"array"``; kernels that no earlier run has compiled are compiled."""
    check_engine(engine)
    if engine == "array":
        from relaycast_trie.array.warm_up import warm_up  # noqa: PLC0415 - loads the compiler

        warm_up()


class _Bulk:
    """One large proof through the array engine, where its kernels are loaded and that is faster."""

    def decode(self, data: bytes) -> StorageProof | None:
        if type(data) is not bytes or not pays_in_arrays(DECODES, len(data)):
            return None
        from relaycast_trie.array import one_proof  # noqa: PLC0415 - loads the compiler

        return one_proof.decode(data)

    def encode(self, proof: StorageProof) -> bytes | None:
        if not pays_in_arrays(ENCODES, proof.most_nodes):
            return None
        from relaycast_trie.array import one_proof  # noqa: PLC0415 - loads the compiler

        return one_proof.encode(proof)

    def verify(self, proof: StorageProof, root: bytes, keys: list[bytes], strict: bool) -> VerifiedProof | None:
        if not pays_in_arrays(READS, proof.most_nodes):
            return None
        from relaycast_trie.array import one_proof  # noqa: PLC0415 - loads the compiler

        return one_proof.verify(proof, root, keys, strict=strict)


def attach() -> None:
    """Give ``StorageProof``, which knows no engine, its ``verify_many`` and its ``bulk``."""
    StorageProof.verify_many = staticmethod(verify_many)
    StorageProof.bulk = _Bulk()
