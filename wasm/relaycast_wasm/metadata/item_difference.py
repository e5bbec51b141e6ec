"""What changed in a pallet's storage, calls, events, errors and constants, and in functions that clients call."""

from collections.abc import Iterator, Sequence

from relaycast_wasm.metadata.change import About, Change
from relaycast_wasm.metadata.model import (
    ApiFunction,
    Deprecation,
    NamedType,
    PalletConstant,
    PalletItem,
    PalletMetadata,
    StorageEntry,
)
from relaycast_wasm.metadata.type_comparison import Relation, TypeComparison

SHOWN_BYTES = 32
"""First bytes of a default or a constant, which are shown."""

DECODING = "old clients cannot decode the new variants"


class ItemDifferences:
    """Tells changes of items; ``types`` compares what they hold."""

    def __init__(self, types: TypeComparison) -> None:
        self._types = types

    def storage(self, old: PalletMetadata, new: PalletMetadata) -> Iterator[Change]:
        entries = {it.name: it for it in new.storage}
        for entry in old.storage:
            name, other = f"{old.name}.{entry.name}", entries.pop(entry.name, None)
            if other is None:
                why = "clients that read it find nothing"
                yield Change("storage", name, "removed", _layout(entry), None, True, why)
            else:
                yield from self._entry(name, entry, other)
        for entry in entries.values():
            yield Change("storage", f"{old.name}.{entry.name}", "added", None, _layout(entry))

    def _entry(self, name: str, old: StorageEntry, new: StorageEntry) -> Iterator[Change]:
        reasons: list[str] = []
        notes: list[str] = []
        if old.hashers != new.hashers or old.linked != new.linked:
            reasons.append("its keys are hashed in another way")
        elif len(old.keys) != len(new.keys):
            reasons.append(f"it has {len(new.keys)} keys, had {len(old.keys)}")
        else:
            for it, other in zip(old.keys, new.keys, strict=True):
                _judge(self._types.relation(it, other), "key: ", reasons, notes, sent=True)
        _judge(self._types.relation(old.value, new.value), "value: ", reasons, notes, sent=False)
        if old.modifier != new.modifier:
            reasons.append(f"an absent value was {old.modifier}, is {new.modifier}")
        elif old.modifier == "Default" and old.default != new.default and not reasons:
            reasons.append(f"its default was {shown_bytes(old.default)}, is {shown_bytes(new.default)}")
        if reasons or notes:
            why = "; ".join(reasons or notes)
            yield Change("storage", name, "changed", _layout(old), _layout(new), bool(reasons), why)
        yield from self.deprecation("storage", name, old.deprecation, new.deprecation)

    def calls(self, pallet: str, old: Sequence[PalletItem], new: Sequence[PalletItem]) -> Iterator[Change]:
        names, indices = {it.name: it for it in new}, {it.index: it for it in new}
        known = {it.name for it in old}
        for call in old:
            name, other = f"{pallet}.{call.name}", names.get(call.name)
            at = indices.get(call.index)
            if other is not None:
                yield from self._call(name, call, other)
            elif at is not None and at.name not in known and not self._fields(call, at, sent=True)[0]:
                why = f"what clients send as {call.name} calls {at.name} now"
                yield Change("call", name, "renamed", call.name, at.name, True, why)
                names.pop(at.name, None)
            else:
                why = "sending it fails" if at is None else f"sending it calls {at.name}, or fails"
                yield Change("call", name, "removed", _signature(call), None, True, why)
        for call in new:
            if call.name in names and call.name not in known:
                yield Change("call", f"{pallet}.{call.name}", "added", None, _signature(call))

    def _call(self, name: str, old: PalletItem, new: PalletItem) -> Iterator[Change]:
        if old.index != new.index:
            why = "clients send it with the old index"
            yield Change("call", name, "reindexed", str(old.index), str(new.index), True, why)
        reasons, notes = self._fields(old, new, sent=True)
        if reasons or notes:
            why = "; ".join(reasons or notes)
            yield Change("call", name, "changed", _signature(old), _signature(new), bool(reasons), why)
        yield from self.deprecation("call", name, old.deprecation, new.deprecation)

    def told(self, about: About, pallet: str, old: Sequence[PalletItem], new: Sequence[PalletItem]) -> Iterator[Change]:
        """Tell changes of events or errors, which clients read by their index."""
        names, indices = {it.name: it for it in new}, {it.index: it for it in new}
        for item in old:
            name, other = f"{pallet}.{item.name}", names.get(item.name)
            if other is None:
                taken = indices.get(item.index)
                why = "" if taken is None else f"old clients take {taken.name} for it"
                yield Change(about, name, "removed", _signature(item), None, taken is not None, why)
                continue
            if item.index != other.index:
                why = "clients read it by the old index"
                yield Change(about, name, "reindexed", str(item.index), str(other.index), True, why)
            reasons, notes = self._fields(item, other, sent=False)
            if reasons or notes:
                why = "; ".join(reasons or notes)
                yield Change(about, name, "changed", _signature(item), _signature(other), bool(reasons), why)
            yield from self.deprecation(about, name, item.deprecation, other.deprecation)
        known = {it.name for it in old}
        for item in new:
            if item.name not in known:
                yield Change(about, f"{pallet}.{item.name}", "added", None, _signature(item))

    def constants(self, pallet: str, old: Sequence[PalletConstant], new: Sequence[PalletConstant]) -> Iterator[Change]:
        names = {it.name: it for it in new}
        for constant in old:
            name, other = f"{pallet}.{constant.name}", names.pop(constant.name, None)
            if other is None:
                why = "clients that read it find nothing"
                yield Change("constant", name, "removed", constant.type.text, None, True, why)
                continue
            reasons: list[str] = []
            notes: list[str] = []
            _judge(self._types.relation(constant.type, other.type), "", reasons, notes, sent=False)
            if reasons or notes:
                why = "; ".join(reasons or notes)
                yield Change("constant", name, "changed", constant.type.text, other.type.text, bool(reasons), why)
            if constant.value != other.value:
                yield Change("constant", name, "changed", shown_bytes(constant.value), shown_bytes(other.value))
            yield from self.deprecation("constant", name, constant.deprecation, other.deprecation)
        for constant in names.values():
            yield Change("constant", f"{pallet}.{constant.name}", "added", None, constant.type.text)

    def functions(
        self, about: About, holder: str, old: Sequence[ApiFunction], new: Sequence[ApiFunction]
    ) -> Iterator[Change]:
        names = {it.name: it for it in new}
        for function in old:
            name, other = f"{holder}.{function.name}", names.pop(function.name, None)
            if other is None:
                yield Change(about, name, "removed", _function(function), None, True, "calls of it fail")
                continue
            reasons, notes = self._inputs(function.inputs, other.inputs, sent=True)
            _judge(self._types.relation(function.output, other.output), "output: ", reasons, notes, sent=False)
            if function.id != other.id:
                reasons.append("it is called by another id")
            if reasons or notes:
                why = "; ".join(reasons or notes)
                yield Change(about, name, "changed", _function(function), _function(other), bool(reasons), why)
            yield from self.deprecation(about, name, function.deprecation, other.deprecation)
        for function in names.values():
            yield Change(about, f"{holder}.{function.name}", "added", None, _function(function))

    def deprecation(
        self, about: About, name: str, old: Deprecation | None, new: Deprecation | None
    ) -> Iterator[Change]:
        """Tell of what is deprecated now and was not."""
        if old is None and new is not None:
            parts = [new.note or "", f"since {new.since}" if new.since else ""]
            yield Change(about, name, "deprecated", None, None, why=", ".join(filter(None, parts)))

    def _fields(self, old: PalletItem, new: PalletItem, *, sent: bool) -> tuple[list[str], list[str]]:
        return self._inputs(old.fields, new.fields, sent=sent)

    def _inputs(self, old: Sequence[NamedType], new: Sequence[NamedType], *, sent: bool) -> tuple[list[str], list[str]]:
        """Return the reasons why fields break clients, and what they may know."""
        if len(old) != len(new):
            return [f"it takes {len(new)} arguments, took {len(old)}" if sent else "it carries other fields"], []
        reasons: list[str] = []
        notes: list[str] = []
        names, new_names = [it.name for it in old], [it.name for it in new]
        if names != new_names and None not in names and None not in new_names:
            if any(name in new_names and new_names.index(name) != here for here, name in enumerate(names)):
                reasons.append("the same fields in another order")
            else:
                pairs = zip(names, new_names, strict=True)
                notes.append(", ".join(f"{it} is called {other}" for it, other in pairs if it != other))
        for here, (it, other) in enumerate(zip(old, new, strict=True)):
            where = f"{here if it.name is None else it.name}: "
            _judge(self._types.relation(it.type, other.type), where, reasons, notes, sent=sent)
        return reasons, notes


def _judge(relation: Relation, where: str, reasons: list[str], notes: list[str], *, sent: bool) -> None:
    """Add to ``reasons`` what breaks clients that send a type, or read it, and to ``notes`` the rest."""
    if relation.same:
        return
    if relation.broken or (sent and relation.lost):
        reasons.append(f"{where}{relation.told}")
    else:
        told = f"{where}{relation.told}"
        notes.append(f"{told}: {DECODING}" if relation.gained and not sent else told)


def _layout(entry: StorageEntry) -> str:
    keys = ", ".join(f"{hasher}({key.text})" for hasher, key in zip(entry.hashers, entry.keys, strict=False))
    return f"{keys} => {entry.value.text}" if entry.keys else entry.value.text


def _fields_text(fields: Sequence[NamedType]) -> str:
    return ", ".join(it.type.text if it.name is None else f"{it.name}: {it.type.text}" for it in fields)


def _signature(item: PalletItem) -> str:
    return f"{item.name}({_fields_text(item.fields)})"


def _function(function: ApiFunction) -> str:
    return f"{function.name}({_fields_text(function.inputs)}) -> {function.output.text}"


def shown_bytes(value: bytes) -> str:
    """Return bytes as hex, cut where they are many."""
    rest = len(value) - SHOWN_BYTES
    return f"0x{value[:SHOWN_BYTES].hex()}" + (f".. ({len(value)} bytes)" if rest > 0 else "")
