"""One block of a runtime under way: initialized, filled with inherents and extrinsics, finalized.

All of it happens in one overlay (``sc-block-builder``). An extrinsic that is not included leaves nothing behind, and
what it read is no part of the block's proof.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from relaycast_collator.header import DigestItem, Header
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes
from relaycast_wasm.blocks.applied import EXHAUSTS_RESOURCES, RefusedExtrinsic, is_included, reason_of
from relaycast_wasm.blocks.inherents import Inherents, encode_inherents
from relaycast_wasm.engine.limits import RuntimeAnswer
from relaycast_wasm.exceptions import BlockRefused, CallFailed
from relaycast_wasm.overlay import OverlayedChanges

ONLY_INHERENTS = b"\x01"
"""What ``Core_initialize_block`` answers where the block takes no transactions (``ExtrinsicInclusionMode``)."""

NO_ROOT = bytes(32)


class RuntimeCaller(Protocol):
    """Calls the runtime that builds."""

    def __call__(self, method: str, data: bytes, /, *, overlay: OverlayedChanges) -> RuntimeAnswer: ...


@dataclass(frozen=True, slots=True)
class BodyItem:
    """An extrinsic of the block and what applying it gave."""

    extrinsic: bytes
    result: bytes


class BlockBuilder:
    """Builds one block on ``parent``; each step raises ``BlockRefused`` where the runtime does not go along."""

    def __init__(
        self,
        call: RuntimeCaller,
        overlay: OverlayedChanges,
        parent: Header,
        *,
        digest: Sequence[DigestItem] = (),
    ) -> None:
        self.overlay = overlay
        self.body: list[BodyItem] = []
        self.refused: list[RefusedExtrinsic] = []
        self.log: list[str] = []
        self._runtime = call
        header = Header(parent.hash, parent.number + 1, NO_ROOT, NO_ROOT, tuple(digest))
        self.only_inherents = self._call("Core_initialize_block", header.encode()) == ONLY_INHERENTS

    def apply_inherents(self, inherents: Inherents) -> None:
        """Apply the inherents that the runtime makes of this data; it must include each."""
        with self.transaction():
            answer = self._call("BlockBuilder_inherent_extrinsics", encode_inherents(inherents))
        reader = ScaleReader(answer)
        try:
            made = [encode_bytes(reader.bytes_()) for _ in range(reader.length())]
            reader.done()
        except CodecError as error:
            raise BlockRefused(f"its inherents cannot be read: {error}") from None
        for extrinsic in made:
            refusal = self.apply(extrinsic)
            if refusal is not None:
                raise BlockRefused(f"inherent 0x{extrinsic[:16].hex()}... is refused: {refusal.reason}")

    def apply_waiting(self, extrinsics: Iterable[bytes]) -> None:
        """Apply what waits; where the block takes inherents alone, all of it is refused until a later block."""
        for extrinsic in extrinsics:
            if self.only_inherents:
                alone = "the block takes inherents alone"
                self.refused.append(RefusedExtrinsic(extrinsic, EXHAUSTS_RESOURCES, alone))
            else:
                self.apply(extrinsic)

    def apply(self, extrinsic: bytes) -> RefusedExtrinsic | None:
        """Apply an extrinsic, which starts with its length; return its refusal when it is not included."""
        with self.transaction() as keep:
            try:
                answer = self._runtime("BlockBuilder_apply_extrinsic", extrinsic, overlay=self.overlay)
            except CallFailed as error:
                self.log += error.log
                refusal = RefusedExtrinsic(extrinsic, b"", error.reason)
            else:
                self.log += answer.log
                if is_included(answer.output):
                    keep()
                    self.body.append(BodyItem(extrinsic, answer.output))
                    return None
                refusal = RefusedExtrinsic(extrinsic, answer.output, reason_of(answer.output))
        self.refused.append(refusal)
        return refusal

    def finalize(self) -> Header:
        """End the block and return its header, without a seal."""
        answer = self._call("BlockBuilder_finalize_block", b"")
        try:
            return Header.decode(answer)
        except CodecError as error:
            raise BlockRefused(f"its header cannot be read: {error}") from None

    @contextmanager
    def transaction(self) -> Iterator[Callable[[], None]]:
        """Undo in the end what happens in between, unless the function that this gives is called."""
        overlay, kept = self.overlay, False
        mark, depth = overlay.mark(), overlay.depth
        overlay.start_transaction()

        def keep() -> None:
            nonlocal kept
            kept = overlay.depth == depth + 1

        try:
            yield keep
        finally:
            if kept:
                overlay.commit_transaction()
            else:
                while overlay.depth > depth:
                    overlay.roll_back_transaction()
                overlay.forget(mark)

    def _call(self, method: str, data: bytes) -> bytes:
        try:
            answer = self._runtime(method, data, overlay=self.overlay)
        except CallFailed as error:
            raise BlockRefused(str(error), (*self.log, *error.log)) from error
        self.log += answer.log
        return answer.output
