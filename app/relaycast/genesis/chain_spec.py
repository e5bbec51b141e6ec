"""Raw chain specs: the genesis state that a Substrate chain starts from, as its node exports it.

Law: only a raw spec is accepted. Keys and values are taken as they stand; a child trie's root is put under its prefixed
key, as the state machine has it. A node refuses a spec that has such roots in ``top`` itself. Here they are dropped if
they are the roots of the entries, and refused otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from relaycast.inputs import parse_hex, place_of, read_json
from relaycast.refusal import BadInput, short, shown
from relaycast_trie import CHILD_STORAGE_PREFIX, EMPTY_ROOT, ChildInfo, StateVersion, trie_root
from relaycast_trie.plain.partial_trie import StateWitness

CODE = b":code"

EXPECTED = "a raw chain spec with genesis.raw.top (make one with `build-spec --raw`)"


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """A genesis state: ``top`` without child roots, ``children`` by their storage key."""

    name: str
    """Printable and short: names in untrusted files are escaped and cut when they are read."""

    top: dict[bytes, bytes]
    children: dict[bytes, dict[bytes, bytes]]
    state_version: StateVersion = StateVersion.V0
    """How its values are written: for a spec in the version that its runtime declares, as a node does."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    """What wallets show: the token's symbol and decimals, the prefix of addresses."""

    witness: StateWitness | None = None
    """Nodes of a state of which the values here are a part; ``None`` for a whole state."""

    def state_root(self, *, state_version: StateVersion = StateVersion.V0) -> bytes:
        """Return the state root; of a part of a state that of the whole."""
        if self.witness is not None:
            return self.witness.root
        return trie_root(self.top_with_child_roots(state_version=state_version), state_version=state_version)

    def top_with_child_roots(self, *, state_version: StateVersion = StateVersion.V0) -> dict[bytes, bytes]:
        """Return the whole top trie: the child tries' roots stand in it under their names."""
        top = dict(self.top)
        for storage_key, pairs in self.children.items():
            child_root = trie_root(pairs, state_version=state_version)
            if child_root != EMPTY_ROOT:
                top[ChildInfo.new_default(storage_key).prefixed_storage_key()] = child_root
        return top

    def __repr__(self) -> str:
        return f"<ChainSpec {self.name!r}: {len(self.top)} entries, {len(self.children)} child tries>"


def refuse_part(state: ChainSpec, place: str) -> None:
    """Raise ``BadInput`` for a witness where a whole state is needed."""
    if state.witness is not None:
        raise BadInput(place, "a witness, which holds a part of a state", "a whole state")


def missing_children(state: ChainSpec) -> list[bytes]:
    """Return the names of child tries whose root is in the top trie but whose entries are missing."""
    prefix = CHILD_STORAGE_PREFIX
    named = [key[len(prefix) :] for key in state.top if key.startswith(prefix)]
    return [name for name in sorted(named) if name not in state.children]


def refuse_missing_children(state: ChainSpec, place: str) -> None:
    """Raise ``BadInput`` for a child trie without entries, if a chain starts from the state."""
    for name in missing_children(state)[:1]:
        raise BadInput(place, f"the root of child 0x{name.hex()} without its entries", "all entries of a child trie")


def without_child_roots(state: ChainSpec, place: str) -> ChainSpec:
    """Remove the roots of known child tries from the top trie; raises ``BadInput`` for a root that does not match."""
    top = dict(state.top)
    for child, pairs in state.children.items():
        root = top.pop(ChildInfo.new_default(child).prefixed_storage_key(), None)
        if root is not None and all(trie_root(pairs, state_version=version) != root for version in StateVersion):
            got = f"0x{root.hex()} as root of child 0x{child.hex()}, whose {len(pairs):,} entries have another root"
            raise BadInput(place, got, "all entries of a child trie, or none")
    return replace(state, top=top)


def read_chain_spec(file: str) -> ChainSpec:
    """Return the chain spec in ``file``, gzipped or not; raises ``BadInput`` for anything but a raw one."""
    return spec_of(read_json(file), place_of(file))


def spec_of(content: Any, place: str) -> ChainSpec:
    """Return the chain spec that a JSON value is; ``place`` is where it comes from."""
    if not isinstance(content, dict):
        raise BadInput(place, shown(content), EXPECTED)
    genesis = content.get("genesis")
    raw = genesis.get("raw") if isinstance(genesis, dict) else None
    if not isinstance(raw, dict):
        inside, members = ("genesis", genesis) if isinstance(genesis, dict) else ("top level", content)
        got = f"a spec whose {inside} holds {', '.join(map(shown, members)) or 'nothing'}"
        raise BadInput(f"{place} at genesis.raw", got, EXPECTED)
    children = raw.get("childrenDefault", {})
    if not isinstance(children, dict):
        raise BadInput(f"{place} at genesis.raw.childrenDefault", shown(children), "an object of child tries")
    properties = content.get("properties")
    spec = ChainSpec(
        name=short(str(content.get("name", ""))),
        top=_entries(raw.get("top"), f"{place} at genesis.raw.top"),
        children=dict(_children(children, f"{place} at genesis.raw.childrenDefault")),
        properties=properties if isinstance(properties, dict) else {},
    )
    spec = replace(spec, state_version=_version_of(spec.top.get(CODE, b"")))
    return without_child_roots(spec, place)


def _version_of(code: bytes) -> StateVersion:
    """Return the state version in the code of a runtime; one that is too old to declare it writes version 0."""
    if not code:
        return StateVersion.V0
    from relaycast_wasm.code_blob import wasm_of  # noqa: PLC0415 - few states need it
    from relaycast_wasm.exceptions import NotARuntime  # noqa: PLC0415
    from relaycast_wasm.runtime_version import embedded_version  # noqa: PLC0415

    try:
        found = embedded_version(wasm_of(code))
    except NotARuntime:
        return StateVersion.V0
    return StateVersion.V0 if found is None else found.trie_version


def _children(children: dict[str, Any], place: str) -> Iterable[tuple[bytes, dict[bytes, bytes]]]:
    for name, pairs in children.items():
        inside = f"{place}[{shown(name)}]"
        yield parse_hex(name, f"{inside} (key)"), _entries(pairs, inside)


def _entries(pairs: Any, place: str) -> dict[bytes, bytes]:
    if not isinstance(pairs, dict):
        raise BadInput(place, shown(pairs), 'an object of "0xkey": "0xvalue"')
    entries: dict[bytes, bytes] = {}
    for name, value in pairs.items():
        key = parse_hex(name, f"{place} (key)")
        if key in entries:
            raise BadInput(place, f"the key {shown(name)} again in other letters", "every key once")
        entries[key] = parse_hex(value, f"{place}[{shown(name)}]")
    return entries
