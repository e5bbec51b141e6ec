"""The trie views of a run's report: one or two blocks of the largest readers, within what a page can hold."""

from msgspec import Struct
from msgspec.structs import replace

from relaycast.genesis.storage_names import storage_name
from relaycast.report.icicle import NARROWEST
from relaycast.report.trie_view import Room, TrieView, picture_view
from relaycast.report.verdicts import title as reader_title
from relaycast_ledger.outcome import Outcome
from relaycast_ledger.proof_picture import PicturedTrie, ProofPicture
from relaycast_xcm import ParaId

MAX_ROWS = 900
MAX_NODES = 1_200
"""Limits of a page, all its views together."""

MAX_TRIES = 9
"""Tries shown of one block: the relay chain's own, and those of the publishers with most bytes."""


class BlockView(Struct, frozen=True):
    """One block of a reader: its heading, and the tries that its proof has paths of."""

    reader: str
    heading: str
    which: str
    tries: tuple[TrieView, ...]
    more_tries: int


def block_views(run: Outcome) -> list[BlockView]:
    """Return the views of all pictured blocks, by reader."""
    pictures = [(it, picture) for it in run.subscribers for picture in run.pictures.get(it.para_id, [])]
    shown = sum(min(MAX_TRIES, len(picture.tries)) for _, picture in pictures)
    room = Room(max(4, MAX_ROWS // max(1, shown)), max(4, MAX_NODES // max(1, shown)), max(NARROWEST, shown / 12))
    views, seen = [], set()
    for reader, picture in pictures:
        which = "a later block" if reader.para_id in seen else "the first whole block"
        if not picture.complete:
            which = which.replace("whole ", "") + ", cut short"
        seen.add(reader.para_id)
        views.append(_block_view(run, reader_title(reader), picture, which, room))
    return views


def _block_view(run: Outcome, reader: str, picture: ProofPicture, which: str, room: Room) -> BlockView:
    top, *children = picture.tries
    children.sort(key=_proof_bytes, reverse=True)
    shown = [top, *children[: MAX_TRIES - 1]]
    heading = (
        f"relay block {picture.tick:,}: {picture.proof_bytes:,} bytes of relay proof, {picture.pubsub_bytes:,} of them "
        f"for pub-sub"
    )
    tries = tuple(_trie_view(run, trie, room) for trie in shown)
    return BlockView(reader, heading, which, tries, len(picture.tries) - len(shown))


def _trie_view(run: Outcome, trie: PicturedTrie, room: Room) -> TrieView:
    if trie.publisher is None:
        names = {key: storage_name(key) for key in trie.keys}
        room = replace(room, rows=max(16, room.rows))
        return picture_view(trie, title="Relay chain's top trie", names=names, room=room)
    names = {key: name for (publisher, key), name in run.key_names.items() if publisher == trie.publisher}
    note = f"{len(trie.changed):,} of {len(trie.keys):,} subscribed keys have a new value; {trie.reason}."
    called = _publisher_title(run, trie.publisher)
    return picture_view(trie, title=called, names=names, room=room, note=note)


def _publisher_title(run: Outcome, publisher: ParaId) -> str:
    name = next((it.name for it in run.publishers if it.para_id == publisher), "")
    return f"Child trie of publisher {publisher} {name}".rstrip()


def _proof_bytes(trie: PicturedTrie) -> int:
    return sum(node.node_bytes for node in trie.nodes if node.is_in_proof and node.node_hash and not node.is_again)
