"""Whole questions in one call: from Python lists of byte strings to Python lists of byte strings.

Numba takes 0.5 us to enter a kernel, and as much for each array that it gives back; numpy takes 0.3 us to make one. Ten
of these cost more than a proof of few keys needs. What cannot be answered here is left to the faces of the kernels that
these contain. They read and make Python objects, so they keep the interpreter's lock.
"""

import numpy as np

from relaycast_trie.kernels.build import build_branches, order_by_height, rank_strings, settle_ties
from relaycast_trie.kernels.compiling import JIT, kernel, locked_kernel
from relaycast_trie.kernels.decode import LENGTH_BYTES, PLAN, measure_lists, take_lists, write_list
from relaycast_trie.kernels.encode import BRANCH_BYTES, refer_to_branches, refer_to_entries
from relaycast_trie.kernels.get import GROUP, collect_proofs, find_entries, write_nodes
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, Words, int64
from relaycast_trie.kernels.python_lists import LOCKED, NOT_BYTES
from relaycast_trie.kernels.tables import REF, ROW, Branches, Column, Entries, Tables, entries_in, place
from relaycast_trie.kernels.verify import ABSENT, FAILS, MOST_CHILDREN, TWIN, hash_strings, verify_proofs

AT_ONCE = bool(JIT and LOCKED)
"""Whether these kernels are there: they are compiled, and a lock keeps lists as they are."""

TWINS = 4
"""Added to the status of a proof that holds: it has a node twice."""

NO_MEMORY = -3
"""An answer: there is no memory for the values."""

TOO_MANY = -4
"""An answer: keys touch more nodes than there is room for."""

NODES_A_KEY = 8
"""Hashed nodes of a key for which there is room."""

TOO_LONG = -5
"""An answer: there is a key too long for a trie."""

MOST_KEY_BYTES = 0x7FFF

HASH = 32

if AT_ONCE:
    from relaycast_trie.kernels.python_lists import _gather, _string, _type, _view, put_string

    @locked_kernel
    def verify_at_once(nodes: int, data: Bytes, offsets: Int64s, asked: int, exact: int, values: int) -> int:
        """Verify a proof; return its status or another answer.

        Its nodes are the list at the address ``nodes`` or, where that is 0, lie between consecutive offsets. ``asked``
        is the address of a list: the keys, and the root of 32 bytes behind them. ``values`` is the address of a list
        with an item for each key, which becomes its value unless it is absent. ``exact`` is the address of the type
        ``bytes``. A status is one of ``verify``'s, with ``TWINS`` where nodes come twice. The answer is ``NOT_BYTES``
        where an item of a list is of another type.
        """
        key_data, key_offsets, key_sizes, width = _gather(asked, exact)
        if nodes and width != NOT_BYTES:
            data, offsets, _, width = _gather(nodes, exact)
        if width == NOT_BYTES:
            return int64(NOT_BYTES)
        count, keys = len(offsets) - 1, len(key_sizes) - 1
        sizes = np.empty(count, np.int32)
        for node in range(count):
            sizes[node] = offsets[node + 1] - offsets[node]
        strings = (data, offsets[:-1], sizes, int64(-1))
        hashes = np.empty(HASH * count, np.uint8)
        hash_strings(strings, count, hashes)
        places = 4
        while places < 2 * count:
            places *= 2
        node_ends, key_ends = np.zeros(2, np.int64), np.zeros(2, np.int64)
        node_ends[1], key_ends[1] = count, keys
        used, found, status = np.zeros(count, np.uint8), np.empty(3 * keys, np.int64), np.empty(1, np.uint8)
        verify_proofs(
            strings,
            hashes,
            node_ends,
            key_data[key_offsets[keys] :],
            (key_data, key_offsets[:-1], key_sizes, int64(-1)),
            key_ends,
            np.empty(places, np.int32),
            np.zeros(PLAN * (count + 1), np.int64),
            np.empty(MOST_CHILDREN * (count + 1), np.int32),
            used,
            found,
            np.empty(0, np.int64),
            status,
            False,
        )
        answer = int64(status[0])
        if answer == FAILS:
            return answer
        for key in range(keys):
            if found[3 * key] != ABSENT and not put_string(values, key, data, found[3 * key], found[3 * key + 1]):
                return int64(NO_MEMORY)
        for node in range(count):
            if used[node] == TWIN:
                return answer + TWINS
        return answer

    @kernel
    def _put_values(tables: Tables, found: Int32s, values: int) -> bool:
        """Make the value of each entry that is not negative an item of the list; return whether there was memory."""
        value = entries_in(tables).value
        for i in range(len(found)):
            if found[i] >= 0:
                at, size = place(value, found[i])
                if not put_string(values, i, value.data, at, size):
                    return False
        return True

    @locked_kernel
    def get_at_once(tables: Tables, root: int, keys: int, exact: int, values: int) -> int:
        """Read keys below the node ``root``: addresses and answers as in ``verify_at_once``, 0 for no error."""
        data, offsets, sizes, width = _gather(keys, exact)
        if width == NOT_BYTES:
            return int64(NOT_BYTES)
        found = np.empty(len(sizes), np.int32)
        find_entries(tables, root, (data, offsets[:-1], sizes, int64(-1)), len(sizes), found)
        return int64(0 if _put_values(tables, found, values) else NO_MEMORY)

    @locked_kernel
    def prove_at_once(tables: Tables, root: int, longest: int, keys: int, exact: int) -> tuple[int, Bytes, Int64s]:
        """Return how many nodes reading keys below ``root`` touches, the nodes one after another, and their offsets.

        ``keys`` and ``exact`` are addresses as in ``verify_at_once``; references are settled, and ``longest``
        bounds the bytes of a node. In place of the number there may be ``NOT_BYTES`` or ``TOO_MANY``.
        """
        data, offsets, sizes, width = _gather(keys, exact)
        room = 4 * GROUP
        while room < NODES_A_KEY * len(sizes) + 2 * GROUP:
            room *= 2
        nodes, node_ends = np.empty(room, np.int64), np.zeros(2, np.int64)
        bound = int64(TOO_MANY)
        if width != NOT_BYTES:
            ends, rooms, roots = np.zeros(2, np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
            ends[1], rooms[0], roots[0] = len(sizes), room, root
            column = (data, offsets[:-1], sizes, int64(-1))
            table = np.empty(2 * room, np.int64)
            bound = collect_proofs(tables, roots, column, ends, rooms, table, nodes, node_ends)
        if bound < 0:
            return int64(NOT_BYTES if width == NOT_BYTES else TOO_MANY), data, offsets
        count = node_ends[1]
        written, places = np.empty(bound + longest, np.uint8), np.empty(count + 1, np.int64)
        write_nodes(tables, nodes, count, written, places)
        return count, written[: places[count]], places

    @locked_kernel
    def decode_at_once(encoded: int, exact: int) -> tuple[int, Bytes, Int64s]:
        """Return how many strings an encoded list holds, the strings one after another, and their offsets.

        ``encoded`` is the address of a ``bytes`` object, ``exact`` that of its type. In place of the number there may
        be ``NOT_BYTES`` or ``NOT_A_LIST``.
        """
        ends, counts, sizes = np.zeros(2, np.int64), np.empty(1, np.int64), np.zeros(1, np.int64)
        address, counts[0] = int64(0), NOT_BYTES
        if _type(encoded) == exact:
            address, ends[1] = _string(encoded)
            measure_lists(_view(address, ends[1]), ends, counts, sizes)
        strings, offsets = np.empty(sizes[0], np.uint8), np.zeros(max(counts[0], 0) + 1, np.int64)
        if counts[0] > 0:
            take_lists(_view(address, ends[1]), ends, counts, strings, offsets)
        return counts[0], strings, offsets

    @kernel
    def _largest(sizes: Int32s) -> int:
        largest = int64(0)  # numpy's own, compiled, brings an iterator and a reshape along: a second of compiling
        for i in range(len(sizes)):
            largest = max(largest, int64(sizes[i]))
        return largest

    @kernel
    def _sort_few(words: Words) -> None:
        """Sort few numbers."""
        for i in range(1, len(words)):
            word, k = words[i], i
            while k > 0 and words[k - 1] > word:
                words[k] = words[k - 1]
                k -= 1
            words[k] = word

    @locked_kernel
    def encode_at_once(data: Bytes, offsets: Int64s, encoded: int) -> int:
        """Make the few strings between consecutive offsets, sorted and each once, an encoded list; return 0.

        It becomes item 0 of the list at the address ``encoded``, unless the answer is ``NO_MEMORY``.
        """
        count = len(offsets) - 1
        sizes, order, spare = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
        for i in range(count):
            sizes[i] = offsets[i + 1] - offsets[i]
        column, words = Column(data, offsets[:-1], sizes, int64(-1)), np.empty(count, np.uint64)
        rank_strings(column, _largest(sizes), words)
        _sort_few(words)
        kept = settle_ties(column, words, order, spare)
        out = np.empty(len(data) + LENGTH_BYTES * (kept + 1), np.uint8)
        size = write_list(column, order[:kept], out)
        return int64(0 if put_string(encoded, 0, out, 0, size) else NO_MEMORY)

    @locked_kernel
    def root_at_once(keys: int, values: int, exact: int, external_from: int, root: int) -> int:
        """Make the root of the trie of sorted keys and their values item 0 of a list; return 0 or another answer.

        All but ``external_from``, the bytes from which values become external, are addresses: of lists of equal
        lengths, at least 1, and in ``exact`` of the type ``bytes``. The item is the reference of the top node: its hash
        or, below 32 bytes, its encoding. The answer may be ``NOT_BYTES``, ``TOO_LONG``, ``NO_MEMORY``, or
        ``build.UNSORTED``.
        """
        key_data, key_offsets, key_sizes, key_width = _gather(keys, exact)
        data, offsets, sizes, width = _gather(values, exact)
        if NOT_BYTES in (key_width, width):
            return int64(NOT_BYTES)
        count = len(key_sizes)
        longest_key, longest_value = _largest(key_sizes), _largest(sizes)
        if longest_key > MOST_KEY_BYTES:
            return int64(TOO_LONG)
        entries = Entries(
            Column(key_data, key_offsets[:-1], key_sizes, key_width),
            Column(data, offsets[:-1], sizes, width),
            np.empty(HASH * count if longest_value >= external_from else 0, np.uint8),
            np.empty(count, np.int32),
            np.empty(REF * count, np.uint8),
            np.empty(count, np.uint8),
        )
        rows, heights = np.empty((count - 1, ROW), np.int32), np.empty(count - 1, np.int32)
        nibbles, top = 2 * longest_key + 2, np.zeros(1, np.int64)
        no_refs = np.empty(0, np.uint8)
        used = build_branches(entries, count, Branches(rows, no_refs), heights, np.empty(nibbles, np.int32), top)
        if used < 0:
            return int64(used)
        branches = Branches(rows, np.empty(REF * used, np.uint8))
        order, levels = np.empty(used, np.int32), np.zeros(nibbles + 2, np.int64)
        steps = order_by_height(heights, used, order, levels)
        longest = BRANCH_BYTES + longest_key + longest_key // 64 + longest_value
        refer_to_entries(entries, count, external_from, longest, 0)
        refer_to_branches(entries, branches, order, levels[: steps + 1], longest, 0)
        refs, at = (entries.ref, top[0] - 1) if top[0] > 0 else (branches.ref, -top[0] - 1)
        return int64(0 if put_string(root, 0, refs, REF * at + 1, int64(refs[REF * at] >> 2)) else NO_MEMORY)
