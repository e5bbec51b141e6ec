"""What a network's relay chain starts from: a modelled state, or one that somebody has."""

from dataclasses import replace
from os import PathLike, fspath

from relaycast.feed import described, whole_number
from relaycast.genesis.chain_spec import ChainSpec, refuse_missing_children
from relaycast.genesis.state_export import read_state
from relaycast.inputs import place_of
from relaycast_collator import Genesis, modelled_genesis
from relaycast_trie import StateVersion


def start_of(
    genesis: str | PathLike[str] | ChainSpec | Genesis | None, *, seed: int, state_version: int | None
) -> Genesis:
    """Return the state to start from, migrated to ``state_version`` where one is given; a ``Genesis`` is that state.

    Raises ``TypeError``, ``ValueError``, and ``BadInput`` for a file that is no state.
    """
    if isinstance(genesis, Genesis):
        return genesis
    spec = read_state(fspath(genesis)) if isinstance(genesis, str | PathLike) else genesis
    if not isinstance(spec, ChainSpec | None):
        raise TypeError(f"a genesis is a ChainSpec or the file of one, got {described(spec)}")
    if spec is None:
        start = modelled_genesis(seed)
    else:
        refuse_missing_children(spec, place_of(fspath(genesis)) if isinstance(genesis, str | PathLike) else "genesis")
        start = Genesis(spec.top, spec.children, spec.state_version, witness=spec.witness)
    if state_version is None:
        return start
    if whole_number(state_version, "a state version") not in tuple(StateVersion):
        raise ValueError(f"a state version is 0 or 1, got {state_version}")
    if start.witness is not None and state_version != start.state_version:
        raise ValueError(f"a witness of version {int(start.state_version)} cannot be migrated before block 1")
    return replace(start, state_version=StateVersion(state_version))
