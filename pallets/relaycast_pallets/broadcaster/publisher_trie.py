"""The name of a publisher's child trie: derived from the publisher's id, and read back."""

from functools import cache

from relaycast_trie.child_info import ChildInfo
from relaycast_xcm.primitives import ParaId

PUBSUB = b"pubsub"
"""The first bytes of the name of every publisher's child trie. The id follows as a u32."""


@cache
def derive_child_info(publisher: int) -> ChildInfo:
    """Return the child trie of a publisher: ``(b"pubsub", para_id)`` in SCALE, ten bytes without a length."""
    return ChildInfo.new_default(PUBSUB + ParaId(publisher).encode())


def publisher_of(child_info: ChildInfo) -> ParaId | None:
    """Return the publisher whose child trie this is, ``None`` if it is another kind of child trie."""
    name = child_info.storage_key
    if len(name) != len(PUBSUB) + 4 or not name.startswith(PUBSUB):
        return None
    return ParaId(int.from_bytes(name[len(PUBSUB) :], "little"))
