"""Which nodes of a graph are one type: those of one form whose parts are one type, pair by pair.

Law: the work is within a factor log n of the number n of references. A node is taken apart into pairs of its form and
its references, from left to right; two pairs are one if both halves are. When two pairs become one, only the pairs
that hold the one with fewer neighbours are compared again. Two circles that are alike but share no node stay two.
Source: Downey, Sethi and Tarjan, "Variations on the Common Subexpression Problem" (1980).
"""

from collections.abc import Iterable, Sequence

from relaycast_gateway.candid.type_graph import Node, RecordType, redirected, references

_NO_PARTS = "no parts"


def merged(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], dict[int, int]]:
    """Return the nodes without those that repeat another, and the new index of each."""
    kinds = _kinds(nodes)
    first: dict[int, int] = {}
    for at, kind in enumerate(kinds):
        first.setdefault(kind, at)
    place = {kind: new for new, kind in enumerate(first)}
    final = {at: place[kind] for at, kind in enumerate(kinds)}
    return tuple(redirected(nodes[at], final) for at in first.values()), final


def _kinds(nodes: Sequence[Node]) -> list[int]:
    """Return a number for each node, the same for those that are one type."""
    halves: list[tuple[int, int]] = [(-1, -1)] * len(nodes)
    atoms: dict[object, int] = {}

    def atom(key: object) -> int:
        found = atoms.setdefault(key, len(halves))
        if found == len(halves):
            halves.append((-1, -1))
        return found

    for at, node in enumerate(nodes):
        parts = references(node)
        form = redirected(node, dict.fromkeys(parts, 0))
        pair = atom((form, node.order if isinstance(node, RecordType) else ()))
        right = [of if of >= 0 else atom(of) for of in parts] or [atom(_NO_PARTS)]
        for half in right[:-1]:
            halves.append((pair, half))
            pair = len(halves) - 1
        halves[at] = pair, right[-1]
    return _Classes(halves).kind[: len(nodes)]


class _Classes:
    """Pairs that are one so far; ``kind`` is the number of each one's class. A pair (-1, -1) is an atom."""

    def __init__(self, halves: Sequence[tuple[int, int]]) -> None:
        self._halves = halves
        self.kind = list(range(len(halves)))
        self._members = [[at] for at in self.kind]
        self._holders: list[list[int]] = [[] for _ in halves]
        """The pairs that hold a member, by class."""
        for at, (left, right) in enumerate(halves):
            if left >= 0:
                self._holders[left].append(at)
                self._holders[right].append(at)
        self._known: dict[tuple[int, int], int] = {}
        self._equal: list[tuple[int, int]] = []
        self._compare(at for at, (left, _) in enumerate(halves) if left >= 0)
        while self._equal:
            self._join(*self._equal.pop())

    def _compare(self, pairs: Iterable[int]) -> None:
        """Find the pairs whose halves are those of a known one."""
        for at in pairs:
            left, right = self._halves[at]
            known = self._known.setdefault((self.kind[left], self.kind[right]), at)
            if known != at:
                self._equal.append((known, at))

    def _join(self, one: int, other: int) -> None:
        large, small = self.kind[one], self.kind[other]
        if large == small:
            return
        if self._weight(large) < self._weight(small):
            large, small = small, large
        for at in self._members[small]:
            self.kind[at] = large
        self._members[large] += self._members[small]
        self._compare(self._holders[small])
        self._holders[large] += self._holders[small]

    def _weight(self, kind: int) -> int:
        return len(self._members[kind]) + len(self._holders[kind])
