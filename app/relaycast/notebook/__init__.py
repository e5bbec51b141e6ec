"""How notebooks show our objects: ``_repr_html_`` for classes of all rooms, whose modules know nothing of markup.

``import relaycast`` is enough, before or after the rooms: a class has its card once its module is loaded. Neither that
nor drawing a card loads a room that the object did not need.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
else:
    Loader = object  # importlib.abc takes longer to load than all of this package

CARDS = {
    "relaycast_trie.plain.trie_db.TrieDB": "tries.trie_card",
    "relaycast_trie.plain.trie_db_mut.TrieDBMut": "tries.changing_trie_card",
    "relaycast_trie.array.array_trie.ArrayTrie": "tries.array_trie_card",
    "relaycast_trie.proofs.storage_proof.StorageProof": "tries.storage_proof_card",
    "relaycast_trie.proofs.compact_proof.CompactProof": "tries.compact_proof_card",
    "relaycast_trie.proofs.storage_proof.VerifiedProof": "tries.verified_proof_card",
    "relaycast_collator.relay_chain.RelayBlock": "chains.relay_block_card",
    "relaycast_collator.parachain.ParachainBlock": "chains.parachain_block_card",
    "relaycast_collator.chains.ChainSimulator": "chains.chains_card",
    "relaycast_ledger.ledger.Ledger": "chains.ledger_card",
    "relaycast_ledger.records.BlockRecord": "chains.block_record_card",
    "relaycast_ledger.records.Delivery": "chains.delivery_card",
    "relaycast_ledger.run_statistics.SubscriberStatistics": "runs.subscriber_tally_card",
    "relaycast_ledger.run_statistics.DeliveryTotals": "runs.delivery_card",
    "relaycast.network.Network": "runs.network_card",
    "relaycast.network.Reader": "runs.reader_card",
    "relaycast.run.Run": "runs.run_card",
}
"""Each class that has a card, by the module that defines it, and the function of this folder that draws it."""

_MODULES = {path.rpartition(".")[0] for path in CARDS}


def register() -> None:
    """Give the classes their cards: those of loaded modules now, the others as soon as their modules are loaded."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name in _MODULES & sys.modules.keys():
        _give_cards(sys.modules[name])


def _give_cards(module: ModuleType) -> None:
    for path, drawing in CARDS.items():
        name, _, shown = path.rpartition(".")
        if name == module.__name__:
            setattr(getattr(module, shown), "_repr_html_", _method(drawing))  # noqa: B010 - not a method mypy knows


def _method(drawing: str) -> Callable[[object], str]:
    file, _, name = drawing.partition(".")

    def _repr_html_(self: object) -> str:
        draw: Callable[[object], str] = getattr(import_module(f"{__name__}.{file}"), name)
        return draw(self)

    return _repr_html_


class _Finder:
    """Finds modules that have classes with cards, where the other finders find them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> "ModuleSpec | None":
        if name not in _MODULES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    """Loads a module by the loader that was found for it, and leaves no trace but the cards."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: "ModuleSpec") -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _give_cards(module)
