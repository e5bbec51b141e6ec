"""What changed between two runtimes, by their metadata and versions.

Law: a change *breaks clients* when a transaction that an old client encodes is refused or does something else, or when
what it reads does not mean what it did. A variant that an enum gained breaks nobody, though old clients cannot decode
it; a variant that it lost breaks those who send it. Names of fields are no bytes. Where types cannot be compared (one
metadata before V14, the other not), one change says so and types are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from relaycast_wasm.metadata.change import About, Change
from relaycast_wasm.metadata.item_difference import ItemDifferences, shown_bytes
from relaycast_wasm.metadata.model import ExtrinsicFormat, Metadata, PalletMetadata, TypeRef
from relaycast_wasm.metadata.type_comparison import TypeComparison
from relaycast_wasm.runtime_version import RuntimeVersion

T = TypeVar("T")


def differences(before: Metadata, after: Metadata) -> list[Change]:
    """Return all changes from one metadata to another, pallet by pallet in the order of the first."""
    return list(_Differences(before, after).all())


def version_differences(before: RuntimeVersion, after: RuntimeVersion) -> list[Change]:
    """Return what changed in the versions that two runtimes give, their runtime APIs excepted."""
    breaking = {
        "transaction_version": "transactions signed for the old version are refused",
        "state_version": "the state root of the same entries is another one",
    }
    names = (
        "spec_name", "impl_name", "authoring_version", "spec_version", "impl_version", "transaction_version",
        "state_version",
    )  # fmt: skip
    rows = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [
        Change("version", name, "changed", str(old), str(new), name in breaking, breaking.get(name, ""))
        for name, old, new in rows
        if old != new
    ]


def api_version_differences(before: RuntimeVersion, after: RuntimeVersion, names: dict[bytes, str]) -> list[Change]:
    """Return which runtime APIs came, went, or have another version; ``names`` by their id where they are known."""
    changes = []
    for api in dict.fromkeys((*before.apis, *after.apis)):
        name = names.get(api, f"0x{api.hex()}")
        old, new = before.apis.get(api), after.apis.get(api)
        if old == new:
            continue
        if new is None:
            changes.append(Change("runtime api", name, "removed", str(old), None, True, "calls of it fail"))
        elif old is None:
            changes.append(Change("runtime api", name, "added", None, str(new)))
        else:
            changes.append(Change("runtime api", name, "changed", f"version {old}", f"version {new}"))
    return changes


class _Differences:
    def __init__(self, before: Metadata, after: Metadata) -> None:
        self.before, self.after = before, after
        self.types = TypeComparison(before, after)
        self.items = ItemDifferences(self.types)

    def all(self) -> Iterator[Change]:
        before, after = self.before, self.after
        if before.version != after.version:
            yield Change("metadata", "version", "changed", str(before.version), str(after.version))
        if not self.types.comparable:
            old, new = _kind_of_types(before), _kind_of_types(after)
            yield Change("metadata", "types", "changed", old, new, why="types are not compared")
        yield from self.pallets()
        yield from self.extrinsic(before.extrinsic, after.extrinsic)
        if min(before.version, after.version) > 14:
            yield from self.apis()
            yield from self.custom()

    def pallets(self) -> Iterator[Change]:
        old, new = ({it.name: it for it in metadata.pallets} for metadata in (self.before, self.after))
        for name, pallet in old.items():
            if name in new:
                yield from self.pallet(pallet, new[name])
            else:
                yield Change(
                    "pallet", name, "removed", _index(pallet), None, True, "its calls fail and its storage is not read"
                )
        for name, pallet in new.items():
            if name not in old:
                yield Change("pallet", name, "added", None, _index(pallet))

    def pallet(self, old: PalletMetadata, new: PalletMetadata) -> Iterator[Change]:
        name = old.name
        indices = (
            ("calls", old.call_index, new.call_index, "its calls are encoded with the old index"),
            ("events", old.event_index, new.event_index, "its events are read by the old index"),
            ("errors", old.index, new.index, "its errors are read by the old index"),
        )
        moved = [(what, it, other, why) for what, it, other, why in indices if None not in (it, other) and it != other]
        if moved:
            told, reason = ", ".join(what for what, *_ in moved), "; ".join(why for *_, why in moved)
            yield Change("pallet", name, "reindexed", f"{moved[0][1]}", f"{moved[0][2]}", True, f"{told}: {reason}")
        if old.prefix and new.prefix and old.prefix != new.prefix:
            why = "its storage stands under other keys"
            yield Change("pallet", name, "changed", f"prefix {old.prefix}", f"prefix {new.prefix}", True, why)
        yield from self.items.storage(old, new)
        yield from self.items.calls(name, old.calls, new.calls)
        yield from self.items.told("event", name, old.events, new.events)
        yield from self.items.told("error", name, old.errors, new.errors)
        yield from self.items.constants(name, old.constants, new.constants)
        yield from self.items.functions("view function", name, old.view_functions, new.view_functions)
        yield from self.items.deprecation("pallet", name, old.deprecation, new.deprecation)

    def extrinsic(self, old: ExtrinsicFormat, new: ExtrinsicFormat) -> Iterator[Change]:
        if old.versions and new.versions and old.versions != new.versions:
            gone = set(old.versions) - set(new.versions)
            why = "transactions of the old format are refused" if gone else ""
            yield Change(
                "extrinsic", "version", "changed", _listed(old.versions), _listed(new.versions), bool(gone), why
            )
        parts = (("address", old.address, new.address), ("signature", old.signature, new.signature))
        for name, part, other_part in parts:
            yield from self._type("extrinsic", name, part, other_part, "transactions carry it in the old form")
        if not old.versions or not new.versions:  # before V11 metadata does not say
            return
        names, new_names = ([it.name for it in form.extensions] for form in (old, new))
        if names != new_names:
            yield from self._extension_names(names, new_names)
        others = {it.name: it for it in new.extensions}
        for extension in old.extensions:
            other = others.get(extension.name)
            if other is not None:
                why = "signed transactions carry it in the old form"
                yield from self._type("transaction extension", extension.name, extension.type, other.type, why)
                signed = f"{extension.name} (signed unsent)"
                why = "signatures are made over the old form"
                yield from self._type("transaction extension", signed, extension.additional, other.additional, why)

    def _extension_names(self, names: list[str], new_names: list[str]) -> Iterator[Change]:
        why = "transactions signed without knowing it are refused"
        for name in names:
            if name not in new_names:
                yield Change("transaction extension", name, "removed", None, None, True, why)
        for name in new_names:
            if name not in names:
                yield Change("transaction extension", name, "added", None, None, True, why)
        old, new = ([it for it in these if it in others] for these, others in ((names, new_names), (new_names, names)))
        if old != new:
            yield Change("transaction extension", "order", "changed", _listed(old), _listed(new), True, why)

    def apis(self) -> Iterator[Change]:
        old, new = ({it.name: it for it in metadata.apis} for metadata in (self.before, self.after))
        for name, api in old.items():
            if name in new:
                yield from self.items.functions("runtime api", name, api.functions, new[name].functions)
                yield from self.items.deprecation("runtime api", name, api.deprecation, new[name].deprecation)
            else:
                yield Change("runtime api", name, "removed", None, None, True, "calls of it fail")
        for name in new:
            if name not in old:
                yield Change("runtime api", name, "added")

    def custom(self) -> Iterator[Change]:
        old, new = ({it.name: it for it in metadata.custom} for metadata in (self.before, self.after))
        for name in dict.fromkeys((*old, *new)):
            if name not in new:
                yield Change("custom", name, "removed")
            elif name not in old:
                yield Change("custom", name, "added")
            elif old[name].value != new[name].value:
                yield Change("custom", name, "changed", shown_bytes(old[name].value), shown_bytes(new[name].value))

    def _type(self, about: About, name: str, old: TypeRef | None, new: TypeRef | None, why: str) -> Iterator[Change]:
        """Tell of a type that clients encode."""
        relation = self.types.relation(old, new)
        if relation.same or old is None or new is None:
            return
        breaks = bool(relation.broken or relation.lost)
        yield Change(about, name, "changed", old.text, new.text, breaks, f"{relation.told}; {why}" if breaks else "")


def _kind_of_types(metadata: Metadata) -> str:
    return f"V{metadata.version}, which {'names' if metadata.types is None else 'describes'} its types"


def _index(pallet: PalletMetadata) -> str:
    return f"index {pallet.index}"


def _listed(items: Iterable[object] | Sequence[T]) -> str:
    return ", ".join(map(str, items))
