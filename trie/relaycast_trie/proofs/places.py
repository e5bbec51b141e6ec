"""Places of a proof's nodes, counted without going to each.

A node that several parents name stands at a place below each of them, and so does all that is below it. 3 kB of nodes
that name each other many times make more places than any machine can walk. Counting looks at each node once.
"""

from collections.abc import Callable, Iterable, Sequence

from relaycast_trie.exceptions import TooManyNodes


def check_places(roots: Iterable[bytes], below: Callable[[bytes], Sequence[bytes]], most: int) -> None:
    """Raise ``TooManyNodes`` when the tries with these roots have more than ``most`` places together.

    ``below`` returns what a node names, itself named by its hash or its inline bytes.
    """
    counts: dict[bytes, int] = {}
    places = 0
    for root in roots:
        stack = [root]
        while stack:
            reference = stack[-1]
            children = below(reference)
            unknown = [] if reference in counts else [child for child in children if child not in counts]
            if unknown:
                stack += unknown
                continue
            counts[reference] = 1 + sum(counts[child] for child in children)
            if counts[reference] > most:
                raise TooManyNodes(most)
            stack.pop()
        places += counts[root]
        if places > most:
            raise TooManyNodes(most)
