"""Vectors of tries and proofs: roots, nodes, proofs that are made and verified, compact proofs, child tries."""

from typing import Annotated

from msgspec import Meta, Struct

from relaycast.vectors.vector import Entry, Hash, Hex, Vector

Nibble = Annotated[int, Meta(ge=0, lt=16)]
Version = Annotated[int, Meta(ge=0, le=1, description="the state version")]


class ProofRoot(Vector, frozen=True, kw_only=True, tag_field="test", tag="root"):
    """The root of a trie, and its nodes and external values in the order of their bytes."""

    computed = ("root", "nodes")
    state_version: Version
    pairs: list[Entry]
    root: Hash | None = None
    nodes: list[Hex] | None = None


class ChildPairs(Struct, frozen=True, forbid_unknown_fields=True):
    """The pairs of a child trie, whose ``name`` is its key without ``:child_storage:default:``."""

    name: Hex
    pairs: list[Entry]


class ProofMade(Vector, frozen=True, kw_only=True, tag_field="test", tag="proof"):
    """The proof of ``keys``: of the top trie, or of its child trie ``child`` with the way to the child's root.

    The roots of the child tries are added to ``pairs``; a child trie without pairs has no root there.
    """

    computed = ("root", "nodes")
    state_version: Version
    pairs: list[Entry]
    keys: list[Hex]
    children: list[ChildPairs] | None = None
    child: Hex | None = None
    root: Hash | None = None
    nodes: list[Hex] | None = None
    """In the order of their bytes, each once."""


class ProofFinding(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ``values`` of the keys in their order, ``null`` where proven absent, or the ``error``."""

    values: list[Hex | None] | None = None
    error: str | None = None


class ProofVerification(Vector, frozen=True, kw_only=True, tag_field="test", tag="verification"):
    """Nodes that are to prove ``keys`` under ``root``; ``strict`` refuses repeated and unused nodes."""

    computed = ("expect",)
    root: Hash
    nodes: list[Hex]
    keys: list[Hex]
    strict: bool
    child: Hex | None = None
    expect: ProofFinding | None = None


class ProofCompacted(Vector, frozen=True, kw_only=True, tag_field="test", tag="compact"):
    """A storage proof and its compact form, both ways; ``nodes`` in the order of their bytes."""

    computed = ("compact",)
    root: Hash
    nodes: list[Hex]
    compact: list[Hex] | None = None


class CompactRefused(Vector, frozen=True, kw_only=True, tag_field="test", tag="compact-error"):
    """A compact proof that does not decode to a proof under ``root``."""

    computed = ("error",)
    root: Hash
    compact: list[Hex]
    error: str | None = None


class NodeDecoded(Vector, frozen=True, kw_only=True, tag_field="test", tag="node"):
    """A node's bytes: what they hold, or that they do not decode."""

    encoded: Hex
    node: "NodeText | None" = None
    error: str | None = None


class NodeText(Struct, frozen=True, forbid_unknown_fields=True):
    """A node, the empty one without a partial key, a value or children; ``partial`` in nibbles."""

    partial: list[Nibble]
    value: Hex | None
    """The value, or its hash where it is ``hashed``."""

    hashed: bool
    children: list[Hex | None]
    """None of a leaf, 16 of a branch: 32 bytes are a hash, fewer an inline node."""


ProofVector = ProofRoot | ProofMade | ProofVerification | ProofCompacted | CompactRefused | NodeDecoded
