"""``ext_storage_*`` and ``ext_default_child_storage_*``: the state, as the block that is built has it.

Both sets are one: a child trie's functions take the name of the trie first. Version 1 of a function returns what it
found in new memory. A later one writes into a buffer of the runtime, and returns the length of what it found.
"""

from collections.abc import Callable

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import CodecError
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_option, encode_u32
from relaycast_wasm.host.host_call import NONE, HostCall, HostRefusal
from relaycast_wasm.host.memory import U32
from relaycast_wasm.host.registry import declare, host_function
from relaycast_wasm.overlay import CHILD_KEYS, Name, NoTransaction, Removed

MOST_TRANSACTIONS = 1_024
"""Runtimes themselves go no deeper than 255 (``TRANSACTIONAL_LIMIT``)."""

NameOf = Callable[[HostCall, tuple[int, ...]], Name]
"""Returns which trie a function is asked about; a child trie's name is its first argument."""


def _declare_reads(group: str, letters: str, name_of: NameOf) -> None:
    """Declare what reads one key."""
    skipped = len(letters)

    def get(host: HostCall, *given: int) -> int:
        (key,) = given[skipped:]
        value = host.overlay.get(host.read(key), name_of(host, given))
        return host.give(encode_option(None if value is None else encode_bytes(value)))

    def read(host: HostCall, *given: int) -> int:
        key, out, offset = given[skipped:]
        value = host.overlay.get(host.read(key), name_of(host, given))
        if value is None:
            return host.give(b"\x00")
        return host.give(b"\x01" + encode_u32(host.fill(out, value[offset:], partly=True)))

    def read_out(host: HostCall, *given: int) -> int:
        key, out, offset, partly = given[skipped:]
        value = host.overlay.get(host.read(key), name_of(host, given))
        return NONE if value is None else host.fill(out, value[offset:], partly=bool(partly))

    def exists(host: HostCall, *given: int) -> int:
        (key,) = given[skipped:]
        return int(host.overlay.exists(host.read(key), name_of(host, given)))

    declare(f"{group}_get_version_1", letters + "I", "I", get)
    declare(f"{group}_read_version_1", letters + "IIi", "I", read)
    declare(f"{group}_read_version_2", letters + "IIii", "I", read_out)
    declare(f"{group}_exists_version_1", letters + "I", "i", exists)


def _declare_writes(group: str, letters: str, name_of: NameOf) -> None:
    """Declare what writes one key."""
    skipped = len(letters)

    def put(host: HostCall, *given: int) -> None:
        key, value = given[skipped:]
        name = name_of(host, given)
        written, data = host.read(key), host.read(value)
        if not _is_reserved(written, name):
            host.overlay.put(written, data, name)

    def clear(host: HostCall, *given: int) -> None:
        (key,) = given[skipped:]
        name, removed = name_of(host, given), host.read(key)
        if not _is_reserved(removed, name):
            host.overlay.put(removed, None, name)

    declare(f"{group}_set_version_1", letters + "II", "", put)
    declare(f"{group}_clear_version_1", letters + "I", "", clear)


def _declare_steps(group: str, letters: str, name_of: NameOf) -> None:
    """Declare what finds the key after another."""
    skipped = len(letters)

    def next_key(host: HostCall, *given: int) -> int:
        (key,) = given[skipped:]
        found = host.overlay.next_key(host.read(key), name_of(host, given))
        return host.give(encode_option(None if found is None else encode_bytes(found)))

    def next_key_out(host: HostCall, *given: int) -> int:
        key, out = given[skipped:]
        return host.fill(out, host.overlay.next_key(host.read(key), name_of(host, given)) or b"")

    declare(f"{group}_next_key_version_1", letters + "I", "I", next_key)
    declare(f"{group}_next_key_version_2", letters + "II", "i", next_key_out)


def _declare_removals(group: str, letters: str, name_of: NameOf) -> None:
    """Declare what removes all keys under a prefix."""
    skipped = len(letters)

    def removed(host: HostCall, given: tuple[int, ...], limit: int | None, cursor: bytes | None) -> Removed:
        (prefix,) = given[skipped:]
        name, start = name_of(host, given), host.read(prefix)
        if name is None and (start.startswith(CHILD_KEYS) or CHILD_KEYS.startswith(start)):
            return Removed()
        return host.overlay.clear_prefix(start, name, limit=limit, cursor=cursor)

    def clear_prefix(host: HostCall, *given: int) -> None:
        removed(host, given, None, None)

    def clear_prefix_2(host: HostCall, *given: int) -> int:
        *rest, limit = given
        return host.give(_kill_result(removed(host, tuple(rest), _limit(host.read(limit)), None)))

    def clear_prefix_3(host: HostCall, *given: int) -> int:
        *rest, limit, cursor = given
        return host.give(_removals(removed(host, tuple(rest), _limit(host.read(limit)), _bytes(host.read(cursor)))))

    def clear_prefix_4(host: HostCall, *given: int) -> int:
        *rest, limit, cursor, cursor_out, counters = given
        done = removed(host, tuple(rest), _number(limit), _optional(host, cursor))
        return _tell_removals(host, done, cursor_out, counters)

    declare(f"{group}_clear_prefix_version_1", letters + "I", "", clear_prefix)
    declare(f"{group}_clear_prefix_version_2", letters + "II", "I", clear_prefix_2)
    declare(f"{group}_clear_prefix_version_3", letters + "III", "I", clear_prefix_3)
    declare(f"{group}_clear_prefix_version_4", letters + "IIIIi", "i", clear_prefix_4)


def _child(host: HostCall, given: tuple[int, ...]) -> Name:
    return ChildInfo.new_default(host.read(given[0]))


def _top(_host: HostCall, _given: tuple[int, ...]) -> Name:
    return None


for _declare in (_declare_reads, _declare_writes, _declare_steps, _declare_removals):
    _declare("ext_storage", "", _top)
    _declare("ext_default_child_storage", "I", _child)


@host_function("II")
def ext_storage_append_version_1(host: HostCall, key: int, value: int) -> None:
    written, item = host.read(key), host.read(value)
    if not _is_reserved(written, None):
        host.overlay.append(written, item)


@host_function("", "I")
def ext_storage_root_version_1(host: HostCall) -> int:
    return host.give(host.overlay.root(StateVersion.V0))


@host_function("i", "I")
def ext_storage_root_version_2(host: HostCall, version: int) -> int:
    return host.give(host.overlay.root(state_version_of(version)))


@host_function("I")
def ext_storage_root_version_3(host: HostCall, out: int) -> None:
    if out >> 32 < 32:
        raise HostRefusal(f"a root has 32 bytes, the buffer {out >> 32}")
    host.fill(out, host.overlay.root(StateVersion.V0))


@host_function("I", "I")
def ext_storage_changes_root_version_1(host: HostCall, parent_hash: int) -> int:
    host.read(parent_hash)
    return host.give(b"\x00")


@host_function()
def ext_storage_start_transaction_version_1(host: HostCall) -> None:
    if host.overlay.depth >= MOST_TRANSACTIONS:
        raise HostRefusal(f"at most {MOST_TRANSACTIONS:,} transactions may be open")
    host.overlay.start_transaction()


@host_function()
def ext_storage_rollback_transaction_version_1(host: HostCall) -> None:
    try:
        host.overlay.roll_back_transaction()
    except NoTransaction:
        raise HostRefusal("no transaction is open that can be rolled back") from None


@host_function()
def ext_storage_commit_transaction_version_1(host: HostCall) -> None:
    try:
        host.overlay.commit_transaction()
    except NoTransaction:
        raise HostRefusal("no transaction is open that can be committed") from None


@host_function("I", "I")
def ext_default_child_storage_root_version_1(host: HostCall, storage_key: int) -> int:
    return host.give(host.overlay.child_root(ChildInfo.new_default(host.read(storage_key)), StateVersion.V0))


@host_function("Ii", "I")
def ext_default_child_storage_root_version_2(host: HostCall, storage_key: int, version: int) -> int:
    info = ChildInfo.new_default(host.read(storage_key))
    return host.give(host.overlay.child_root(info, state_version_of(version)))


@host_function("II")
def ext_default_child_storage_root_version_3(host: HostCall, storage_key: int, out: int) -> None:
    host.fill(out, host.overlay.child_root(ChildInfo.new_default(host.read(storage_key)), StateVersion.V0))


@host_function("I")
def ext_default_child_storage_storage_kill_version_1(host: HostCall, storage_key: int) -> None:
    _kill(host, storage_key, None, None)


@host_function("II", "i")
def ext_default_child_storage_storage_kill_version_2(host: HostCall, storage_key: int, limit: int) -> int:
    return int(_kill(host, storage_key, _limit(host.read(limit)), None).cursor is None)


@host_function("II", "I")
def ext_default_child_storage_storage_kill_version_3(host: HostCall, storage_key: int, limit: int) -> int:
    return host.give(_kill_result(_kill(host, storage_key, _limit(host.read(limit)), None)))


@host_function("III", "I")
def ext_default_child_storage_storage_kill_version_4(host: HostCall, storage_key: int, limit: int, cursor: int) -> int:
    done = _kill(host, storage_key, _limit(host.read(limit)), _bytes(host.read(cursor)))
    return host.give(_removals(done))


@host_function("IIIIi", "i")
def ext_default_child_storage_storage_kill_version_5(
    host: HostCall, storage_key: int, limit: int, cursor: int, cursor_out: int, counters: int
) -> int:
    done = _kill(host, storage_key, _number(limit), _optional(host, cursor))
    return _tell_removals(host, done, cursor_out, counters)


def _kill(host: HostCall, storage_key: int, limit: int | None, cursor: bytes | None) -> Removed:
    return host.overlay.clear_prefix(b"", ChildInfo.new_default(host.read(storage_key)), limit=limit, cursor=cursor)


def _is_reserved(key: bytes, name: Name) -> bool:
    """Return whether ``key`` is the place of a child trie's root, which no function of the top trie writes to."""
    return name is None and key.startswith(CHILD_KEYS)


def state_version_of(number: int) -> StateVersion:
    """Return the state version that the lowest byte of an argument names: it is a u8."""
    if number & 0xFF > 1:
        raise HostRefusal(f"a state version is 0 or 1, got {number & 0xFF}")
    return StateVersion(number & 0xFF)


def _limit(data: bytes) -> int | None:
    reader = ScaleReader(data)
    try:
        limit = reader.u32() if reader.option() else None
    except CodecError as error:
        raise HostRefusal(f"a limit does not decode: {error}") from None
    return limit


def _bytes(data: bytes) -> bytes | None:
    reader = ScaleReader(data)
    try:
        cursor = reader.bytes_() if reader.option() else None
    except CodecError as error:
        raise HostRefusal(f"a cursor does not decode: {error}") from None
    return cursor


def _number(number: int) -> int | None:
    """Return an optional u32 that stands in an i64; -1 is none."""
    if number == NONE:
        return None
    if number > U32:
        raise HostRefusal(f"a limit is a u32 or -1, got {number}")
    return number


def _optional(host: HostCall, span: int) -> bytes | None:
    """Return the bytes of a span that may be none: -1."""
    return None if span == NONE else host.read(span)


def _kill_result(done: Removed) -> bytes:
    """``KillStorageResult``: whether all went, and how many keys were visited."""
    return bytes([done.cursor is not None]) + encode_u32(done.loops)


def _removals(done: Removed) -> bytes:
    """``MultiRemovalResults``."""
    cursor = encode_option(None if done.cursor is None else encode_bytes(done.cursor))
    return cursor + encode_u32(done.backend) + encode_u32(done.unique) + encode_u32(done.loops)


def _tell_removals(host: HostCall, done: Removed, cursor_out: int, counters: int) -> int:
    if done.cursor is not None:
        host.cursor = done.cursor
    length = host.fill(cursor_out, done.cursor or b"")
    host.memory.write(counters, encode_u32(done.backend) + encode_u32(done.unique) + encode_u32(done.loops))
    return length
