"""Wrong implementations: a vector of the suite catches each of them."""

from collections.abc import Callable

import pytest

from pallets.block_vectors import BlockVector
from pallets.test_interrupted_passes import CASES as INTERRUPTED_MUTANTS
from pallets.test_subscriber_traps import MUTANTS as TRAP_MUTANTS
from pallets.test_subscriber_traps import demand_after_the_callbacks, never_roll_back, shuffle_apart
from relaycast_pallets.subscriber.plan import FairCursor
from yielded_vectors import difference, shipped_vectors, shipped_vectors_of

Patch = tuple[str, object]


def failing(kind: str, file: str) -> list[str]:
    """Return the vectors of a file that an implementation does not pass."""
    return [vector.id for vector in shipped_vectors(f"{kind}/{file}") if difference(vector)]


def _sum_without_end(ttl: int, when_inserted: int) -> int | None:
    return when_inserted + ttl if ttl else None


def _one_block_late(ttl: int, when_inserted: int) -> int | None:
    return min(when_inserted + ttl + 1, (1 << 32) - 1) if ttl else None


def _inline_up_to_31(version: object, value: bytes) -> bool:
    return version == 1 and len(value) > 31


def _inline_up_to_33(version: object, value: bytes) -> bool:
    return version == 1 and len(value) > 33


_EXPIRY = "relaycast_pallets.broadcaster.pallet.expires_at"
_PALLET = "relaycast_pallets.broadcaster.pallet"
MUTANTS: dict[str, tuple[str, str, Patch]] = {
    "expiry does not saturate": ("broadcaster", "expiry", (_EXPIRY, _sum_without_end)),
    "expiry comes one block late": ("broadcaster", "expiry", (_EXPIRY, _one_block_late)),
    "a time of 0 ends at once": ("broadcaster", "expiry", ("relaycast_pallets.broadcaster.storage.INFINITE", -1)),
    "parachain 1999 is public": ("broadcaster", "publication", (f"{_PALLET}.LOWEST_PUBLIC_ID", 1_999)),
    "parachain 2000 is a system parachain": ("broadcaster", "publication", (f"{_PALLET}.LOWEST_PUBLIC_ID", 2_001)),
    "keys count 31 bytes": ("broadcaster", "publication", (f"{_PALLET}.KEY_BYTES", 31)),
    "values from 32 bytes on are external": (
        "proofs", "tries", ("relaycast_trie.node_codec.StateVersion.is_external", _inline_up_to_31)
    ),
    "values of 33 bytes stay inline": (
        "proofs", "tries", ("relaycast_trie.node_codec.StateVersion.is_external", _inline_up_to_33)
    ),
    "messages of 99 instructions decode": ("xcm", "messages", ("relaycast_xcm.codec.MAX_INSTRUCTIONS_TO_DECODE", 99)),
    "messages of 101 instructions decode": ("xcm", "messages", ("relaycast_xcm.codec.MAX_INSTRUCTIONS_TO_DECODE", 101)),
    "nine levels decode": ("xcm", "messages", ("relaycast_xcm.codec.MAX_XCM_DECODE_DEPTH", 9)),
    "payment is looked for in six instructions": ("xcm", "barriers", ("relaycast_xcm.barriers.PAID_PREFIX", 6)),
    "three assets may be withdrawn": ("xcm", "barriers", ("relaycast_xcm.barriers.MAX_ASSETS_FOR_BUY_EXECUTION", 3)),
    "parachain 2000 is among the system parachains": (
        "xcm", "barriers", ("relaycast_xcm.barriers.LOWEST_PUBLIC_ID", 2_001)
    ),
}  # fmt: skip
"""Faults by name, each with the vectors that catch it and the constant or function that is wrong."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_constant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, file, (place, wrong) = MUTANTS[name]
    assert failing(kind, file) == []
    monkeypatch.setattr(place, wrong)
    assert failing(kind, file)


def swapped(first: str, second: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch that lets two registers of the executor change places."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        from relaycast_xcm.executor import Machine  # noqa: PLC0415

        left, right = getattr(Machine, first), getattr(Machine, second)
        monkeypatch.setattr(Machine, first, right)
        monkeypatch.setattr(Machine, second, left)

    return patch


def test_an_appendix_that_runs_before_the_error_handler_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failing("xcm", "executions") == []
    swapped("_take_error_handler", "_take_appendix")(monkeypatch)
    assert "xcm/execution/appendix-and-handler" in failing("xcm", "executions")


def test_a_handler_whose_weight_is_not_given_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaycast_xcm.executor.Machine._drop_error_handler", lambda _: None)
    assert "xcm/execution/handler-unused" in failing("xcm", "executions")


def test_a_scan_that_begins_at_its_cursor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from relaycast_pallets.frame.typed_storage import StorageDoubleMap  # noqa: PLC0415

    genuine = StorageDoubleMap.items

    def from_the_start(self: object, *, start_after: bytes | None = None) -> object:
        return genuine(self)  # type: ignore[arg-type]

    monkeypatch.setattr(StorageDoubleMap, "items", from_the_start)
    assert "broadcaster/on-idle/wraps-5" in failing("broadcaster", "expiry")


def test_a_publication_that_keeps_its_old_expiry_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from relaycast_pallets.broadcaster.storage import BroadcasterStorage  # noqa: PLC0415

    genuine = BroadcasterStorage.write

    def keeping(self: BroadcasterStorage, publisher: object, key: bytes, entry: object, *, total: int) -> None:
        before = self.ttl_data.get(publisher, key)  # type: ignore[arg-type]
        genuine(self, publisher, key, entry, total=total)  # type: ignore[arg-type]
        if before is not None:
            self.ttl_data.insert(publisher, key, before)  # type: ignore[arg-type]

    monkeypatch.setattr(BroadcasterStorage, "write", keeping)
    caught = failing("broadcaster", "expiry")
    assert {"broadcaster/expiry/reset", "broadcaster/expiry/finite-to-infinite"} <= set(caught)


def test_a_tolerant_verifier_fails_where_strictness_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from relaycast_trie import StorageProof  # noqa: PLC0415

    genuine = StorageProof.verify
    monkeypatch.setattr(
        StorageProof, "verify", lambda self, root, keys, *, strict: genuine(self, root, keys, strict=False)
    )
    caught = failing("proofs", "tries")
    assert "proofs/verification/added-0-strict" in caught
    assert all(name.endswith("-strict") for name in caught)


# The pass of the subscriber


@pytest.fixture(scope="module")
def blocks() -> list[BlockVector]:
    return shipped_vectors_of("subscriber")


def forget_what_is_deferred(patch: pytest.MonkeyPatch) -> None:
    """A pass that messages reduce defers no key."""
    after = FairCursor.after
    patch.setattr(FairCursor, "after", lambda self, at: after(self, at)._replace(deferred_key=None))


OF_THE_PASS = [
    *(
        mutate
        for mutate, _, _ in TRAP_MUTANTS
        if mutate not in {never_roll_back, demand_after_the_callbacks, shuffle_apart}
    ),
    *dict.fromkeys(mutate for _, mutate in INTERRUPTED_MUTANTS),
    forget_what_is_deferred,
]
"""Mutants of the pass; the others are of the pallet above it, which holds the block together."""


@pytest.mark.slow
@pytest.mark.parametrize("mutate", OF_THE_PASS, ids=lambda it: it.__name__)
def test_the_vectors_catch_every_mutant_that_the_pallets_tests_catch(
    blocks: list[BlockVector], mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(difference(it) for it in blocks)
