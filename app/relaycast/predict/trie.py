"""What a trie of random keys is expected to hold: branches and leaves of a V1 trie, counted without building one.

The keys are 64 nibbles, hashed, so that each is as good as uniform. At depth ``d`` there are ``16^d`` prefixes. A key
has a given one with the chance ``q = 16^-d``, and ``m`` free keys leave an area ``a`` empty with ``(1 - a)^m``. A
branch stands at a prefix below which keys go on in two ways at least (relaycast_trie/node_codec.py has the bytes):

    P2(m)  = 1 - (1-q)^m - 16 [(1-15q/16)^m - (1-q)^m]         it is there
    E(m)   = 16 [1-(1-q/16)^m] - 16 [(1-15q/16)^m - (1-q)^m]   its children, counted where it is there
    bytes  = 3 P2(m) + 33 E(m) + those of its partial key      header, bitmap, and 33 for each child

The partial key has at least ``j`` nibbles where the prefix that is ``j`` nibbles shorter, of the area ``Q = 16^j q``,
has no other key. The expected number of such branches is ``(1-Q+q)^m P2(m)`` with ``q / (1-Q+q)`` for ``q``. Two
nibbles take one byte, and so does one alone.

Law: all of it is exact for uniform keys of endless length. A leaf or branch under 32 bytes, which would stand inside
its parent, takes keys that agree in 22 nibbles: nobody has such without crafting them.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import expm1, log1p
from typing import NamedTuple

KEY_NIBBLES = 64

NEGLIGIBLE = 1e-3
"""Pairs of keys that agree so deep that no branch is expected there; the sums over the depth end."""


class Some(NamedTuple):
    """A term of inclusion and exclusion: ``sign`` times what ``free`` keys make where ``absent`` ones are not."""

    sign: int
    free: float
    absent: float


class ExpectedBranches(NamedTuple):
    """An expected number of branches, and their bytes."""

    nodes: float
    node_bytes: float


@lru_cache(maxsize=1 << 14)
def branches_on_paths(keys: int, subscribed: int) -> ExpectedBranches:
    """Return the branches on the paths of ``subscribed`` keys: all but those in whose area none of them is."""
    return _branches(keys, (Some(1, keys, 0), Some(-1, keys - subscribed, subscribed)))


@lru_cache(maxsize=1 << 14)
def branches_on_changed_paths(keys: int, subscribed: int, updated: float, elsewhere: float) -> ExpectedBranches:
    """Return the branches that lead to a subscribed key and to a changed one.

    ``updated`` subscribed keys changed, and ``elsewhere`` others: without the branches that have none of the
    subscribed or none of the changed below them, those that have neither put back.
    """
    changed, both = updated + elsewhere, subscribed + elsewhere
    return _branches(
        keys,
        (
            Some(1, keys, 0),
            Some(-1, keys - subscribed, subscribed),
            Some(-1, keys - changed, changed),
            Some(1, keys - both, both),
        ),
    )


def branches_met(keys: float, touched: float, added: float) -> ExpectedBranches:
    """Return the branches on the way to ``touched`` of the keys, or to where ``added`` new ones will stand."""
    return _branches(keys, (Some(1, keys, 0), Some(-1, keys - touched, touched + added)))


@lru_cache(maxsize=1 << 12)
def partial_key_bytes(keys: int) -> tuple[float, float]:
    """Return the expected bytes of a leaf's partial key, and the chance that it has 63 nibbles or more.

    A leaf hangs under the deepest branch that its key shares with another: at depth ``d`` or deeper with the chance
    ``1 - (1-16^-d)^(n-1)``; 63 - d nibbles are left. The only key of a trie keeps all 64.
    """
    if keys == 1:
        return KEY_NIBBLES / 2, 1.0
    shorter, depth = 0.0, 1
    while keys * 16.0**-depth > NEGLIGIBLE * NEGLIGIBLE:
        shorter += met(keys - 1, 16.0**-depth)
        depth += 2
    return KEY_NIBBLES / 2 - shorter, 1 - met(keys - 1, 1 / 16)


def met(keys: float, area: float) -> float:
    """Return the chance that any of ``keys`` is in the ``area``, precise for small ones too."""
    if keys <= 0:
        return 0.0
    return 1.0 if area >= 1 else -expm1(keys * log1p(-area))


def leaves_split(keys: float, untouched: float, added: float) -> float:
    """Return how many ``untouched`` leaves stand where one of the ``added`` keys will, and are read to part them."""
    chance, depth = 0.0, 0
    while keys * keys * 16.0**-depth > NEGLIGIBLE:
        hangs_here = met(keys - 1, 16.0**-depth) - met(keys - 1, 16.0 ** -(depth + 1))
        chance += hangs_here * met(added, 16.0 ** -(depth + 1))
        depth += 1
    return untouched * chance


def leaves_left_alone(keys: float, removed: float, added: float) -> float:
    """Return how many branches lose all but one child when keys are ``removed``: it is read to take their place.

    All that is kept is below one of the sixteen, and something removed below the others.
    """
    kept, found, depth = keys - removed, 0.0, 0
    while keys * keys * 16.0**-depth > NEGLIGIBLE:
        q = 16.0**-depth
        alone = met(kept, q) - met(kept, 15 * q / 16)
        lost_others = met(removed, q) - met(removed, q / 16)
        found += 16 * alone * lost_others * (1 - met(added, q / 16)) / q
        depth += 1
    return found


def _branches(keys: float, terms: Sequence[Some]) -> ExpectedBranches:
    nodes = node_bytes = 0.0
    depth = 0
    while keys * keys * 16.0**-depth > NEGLIGIBLE:
        q = 16.0**-depth
        for sign, free, absent in terms:
            without = sign * (1 - met(absent, q)) / q
            there = _two_ways(free, q)
            nodes += without * there
            node_bytes += without * (3 * there + 33 * _children(free, q))
            node_bytes += sign / q * sum(_partial(free, absent, depth, j) for j in range(1, depth + 1, 2))
        depth += 1
    return ExpectedBranches(max(0.0, nodes), max(0.0, node_bytes))


def _two_ways(keys: float, q: float) -> float:
    """P2: the differences are taken of chances that something is met, which stay precise where ``q`` is tiny."""
    return 16 * met(keys, 15 * q / 16) - 15 * met(keys, q)


def _children(keys: float, q: float) -> float:
    return 16 * (met(keys, 15 * q / 16) + met(keys, q / 16) - met(keys, q))


def _partial(keys: float, absent: float, depth: int, nibbles: int) -> float:
    """Return the chance of a branch at ``depth`` whose partial key has at least ``nibbles``."""
    q, above = 16.0**-depth, 16.0 ** (nibbles - depth)
    inside = 1 - above + q
    return (1 - met(absent, above)) * (1 - met(keys, 1 - inside)) * _two_ways(keys, min(1.0, q / inside))
