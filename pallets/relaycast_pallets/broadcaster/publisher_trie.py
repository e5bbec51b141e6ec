"""The name of a publisher's child trie, derived in one place for those who write it and those who read it."""

from functools import cache

from relaycast_trie.child_info import ChildInfo
from relaycast_xcm.primitives import ParaId


@cache
def derive_child_info(publisher: int) -> ChildInfo:
    """Return the child trie of a publisher: ``(b"pubsub", para_id)`` in SCALE, ten bytes without a length."""
    return ChildInfo.new_default(b"pubsub" + ParaId(publisher).encode())
