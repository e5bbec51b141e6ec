"""What changed between two runtimes, and which of it breaks clients."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from relaycast_wasm import RuntimeVersion
from relaycast_wasm.metadata.api_names import api_id
from relaycast_wasm.metadata.change import Change
from relaycast_wasm.metadata.difference import differences
from relaycast_wasm.metadata.model import (
    ApiFunction,
    ApiMetadata,
    Deprecation,
    ExtrinsicFormat,
    Metadata,
    NamedType,
    OuterEnums,
    PalletConstant,
    PalletItem,
    PalletMetadata,
    StorageEntry,
    TransactionExtension,
    TypeRef,
)
from relaycast_wasm.metadata.read import read_metadata
from relaycast_wasm.metadata.type_table import DescribedType, TypeCase, TypeField, TypeTable
from relaycast_wasm.metadata.upgrade import upgrade
from wasm.metadata.small_metadata import named_metadata, portable_metadata

U32, U64, KIND, PAIR, WRAPPED, CALL, CALLS, LIST = range(8)


def variant(*cases: tuple[str, int]) -> DescribedType:
    return DescribedType("variant", ("Kind",), cases=tuple(TypeCase(name, index) for name, index in cases))


def pair(*names: str) -> DescribedType:
    return DescribedType("composite", ("Pair",), fields=tuple(TypeField(name, U32) for name in names))


TYPES = {
    U32: DescribedType("primitive", name="u32"),
    U64: DescribedType("primitive", name="u64"),
    KIND: variant(("A", 0), ("B", 1)),
    PAIR: pair("from", "to"),
    WRAPPED: DescribedType("composite", ("Wrapped",), fields=(TypeField(None, U32),)),
    CALL: DescribedType("variant", ("bank", "Call"), cases=(TypeCase("pay", 3), TypeCase("lend", 4))),
    CALLS: DescribedType("variant", ("RuntimeCall",), cases=(TypeCase("Bank", 7, (TypeField(None, CALL),)),)),
    LIST: DescribedType("sequence", inside=(KIND,)),
}


def ref(number: int) -> TypeRef:
    described = TYPES[number]
    return TypeRef(described.path[-1] if described.path else described.name or "Vec<Kind>", number)


def entry(name: str, value: int, **other: Any) -> StorageEntry:
    return StorageEntry(name, "Default", (), (), ref(value), b"\x00", **other)


def item(name: str, index: int, *fields: tuple[str, int]) -> PalletItem:
    return PalletItem(name, index, tuple(NamedType(field, ref(number)) for field, number in fields))


BANK = PalletMetadata(
    name="Bank",
    index=7,
    call_index=7,
    event_index=7,
    prefix="Bank",
    storage=(
        entry("Total", U32),
        StorageEntry("Owed", "Optional", ("Twox64Concat",), (ref(KIND),), ref(PAIR), b"\x00"),
        entry("Batch", CALLS),
    ),
    calls=(item("pay", 3, ("to", U32), ("kind", KIND)), item("lend", 4, ("pair", PAIR))),
    events=(item("Paid", 0, ("kind", KIND)), item("Lent", 1)),
    errors=(PalletItem("Broke", 0), PalletItem("Late", 1)),
    constants=(PalletConstant("Fee", ref(U32), b"\x05\x00\x00\x00"),),
)
EXTRINSIC = ExtrinsicFormat(
    (4,),
    (TransactionExtension("CheckNonce", ref(U32), ref(U32)), TransactionExtension("CheckEra", ref(U32), ref(U32))),
    address=ref(U32),
    signature=ref(U32),
)
API = ApiMetadata("BankApi", (ApiFunction("total", (NamedType("at", ref(U32)),), ref(U32)),))
BEFORE = Metadata(
    15, (BANK,), EXTRINSIC, TypeTable(tuple(TYPES.values())), (API,), OuterEnums(ref(CALLS), ref(KIND), ref(KIND))
)


def with_pallet(**changes: Any) -> Metadata:
    return replace(BEFORE, pallets=(replace(BANK, **changes),))


def with_types(types: dict[int, DescribedType]) -> Metadata:
    outer = OuterEnums(ref(CALLS), ref(CALLS), ref(CALLS))
    return replace(BEFORE, types=TypeTable(tuple({**TYPES, **types}.values())), outer_enums=outer)


def found(after: Metadata, before: Metadata = BEFORE) -> list[Change]:
    return differences(before, after)


def only(after: Metadata, before: Metadata = BEFORE) -> Change:
    (change,) = found(after, before)
    return change


PLAIN = replace(BEFORE, outer_enums=OuterEnums(ref(CALLS), ref(CALLS), ref(CALLS)))
"""As ``BEFORE``, but that ``Kind`` is no enum of the runtime's: it is looked into."""


def test_nothing_changed_where_everything_is_the_same() -> None:
    assert found(BEFORE) == []
    for version in (9, 13):
        assert found(read_metadata(named_metadata(version)), read_metadata(named_metadata(version))) == []
    assert found(read_metadata(portable_metadata(16)), read_metadata(portable_metadata(16))) == []


def test_pallets_come_go_and_move() -> None:
    other = replace(BANK, name="Other", index=8, call_index=8, event_index=8)
    assert only(replace(BEFORE, pallets=(BANK, other))) == Change("pallet", "Other", "added", None, "index 8")
    gone = only(BEFORE, replace(BEFORE, pallets=(BANK, other)))
    assert (gone.name, gone.what, gone.breaks) == ("Other", "removed", True)
    moved = only(with_pallet(index=9, call_index=9, event_index=9))
    assert (moved.what, moved.before, moved.after, moved.breaks) == ("reindexed", "7", "9", True)
    assert "its calls are encoded with the old index" in moved.why
    assert only(with_pallet(prefix="Bank2")).why == "its storage stands under other keys"


STORAGE: list[tuple[Callable[[StorageEntry], StorageEntry], bool, str]] = [
    (lambda it: replace(it, value=ref(U32)), True, "value: Pair became u32"),
    (lambda it: replace(it, hashers=("Blake2_128Concat",)), True, "its keys are hashed in another way"),
    (lambda it: replace(it, keys=(ref(U32),)), True, "key: Kind became u32"),
    (lambda it: replace(it, modifier="Default"), True, "an absent value was Optional, is Default"),
    (lambda it: replace(it, default=b"\x01"), False, ""),
]


@pytest.mark.parametrize(("change", "breaks", "why"), STORAGE)
def test_a_storage_item_is_read_in_another_way(
    change: Callable[[StorageEntry], StorageEntry], breaks: bool, why: str
) -> None:
    total, owed, batch = BANK.storage
    changes = found(replace(PLAIN, pallets=(replace(BANK, storage=(total, change(owed), batch)),)), PLAIN)
    assert [(it.name, it.breaks, it.why) for it in changes] == ([("Bank.Owed", True, why)] if breaks else [])


def test_another_default_means_another_value() -> None:
    total, *rest = BANK.storage
    change = only(with_pallet(storage=(replace(total, default=b"\x01"), *rest)))
    assert (change.breaks, change.why) == (True, "its default was 0x00, is 0x01")


def test_storage_items_come_and_go() -> None:
    total, owed, batch = BANK.storage
    assert only(with_pallet(storage=(*BANK.storage, entry("New", U64)))).breaks is False
    gone = only(with_pallet(storage=(total, batch)))
    assert str(gone) == "storage Bank.Owed removed: Twox64Concat(Kind) => Pair (clients that read it find nothing)"
    assert owed.kind == "map"


def test_a_wrapper_that_adds_no_byte_is_no_change_of_type() -> None:
    _, *rest = BANK.storage
    assert found(with_pallet(storage=(entry("Total", WRAPPED), *rest))) == []


@pytest.mark.parametrize(
    ("kind", "sent", "read"),
    [
        (variant(("A", 0), ("B", 1), ("C", 2)), False, False),  # gained: what was sent and read stays
        (variant(("A", 0)), True, False),  # lost: sending it is refused
        (variant(("B", 0), ("A", 1)), True, True),  # moved
        (variant(("A", 0), ("X", 1)), True, True),  # another one at the place
    ],
)
def test_an_enum_breaks_those_who_send_or_those_who_read_it(kind: DescribedType, sent: bool, read: bool) -> None:
    changes = {(it.about, it.name): it.breaks for it in found(with_types({KIND: kind}), PLAIN)}
    assert changes["call", "Bank.pay"] is sent
    assert changes["event", "Bank.Paid"] is read
    assert changes["storage", "Bank.Owed"] is sent, "its key is sent"


@pytest.mark.parametrize(
    ("names", "breaks", "why"),
    [
        (("to", "from"), True, "pair: (from, to) reordered to (to, from)"),
        (("source", "target"), False, "pair: renamed from to source, to to target"),
        (("from", "to", "sum"), True, "pair: (from, to) became (from, to, sum)"),
    ],
)
def test_fields_are_known_by_their_place(names: tuple[str, ...], breaks: bool, why: str) -> None:
    changes = {it.name: it for it in found(with_types({PAIR: pair(*names)}), PLAIN)}
    assert changes.keys() == {"Bank.lend", "Bank.Owed"}
    assert (changes["Bank.lend"].breaks, changes["Bank.lend"].why) == (breaks, why)


def test_a_call_that_changes_does_not_change_what_holds_calls() -> None:
    call = replace(TYPES[CALL], cases=(TypeCase("pay", 3, (TypeField("sum", U64),)), TypeCase("lend", 4)))
    assert found(with_types({CALL: call}), PLAIN) == []


def test_calls_come_go_move_and_change() -> None:
    pay, lend = BANK.calls
    assert only(with_pallet(calls=(pay, lend, item("save", 5)))).breaks is False
    assert only(with_pallet(calls=(lend,))).why == "sending it fails"
    moved = only(with_pallet(calls=(replace(pay, index=9), lend)))
    assert (moved.what, moved.before, moved.after, moved.breaks) == ("reindexed", "3", "9", True)
    renamed = only(with_pallet(calls=(replace(pay, name="send"), lend)))
    assert (renamed.what, renamed.after, renamed.breaks) == ("renamed", "send", True)
    replaced = found(with_pallet(calls=(item("save", 3), lend)))
    assert [(it.what, it.breaks) for it in replaced] == [("removed", True), ("added", False)]
    assert replaced[0].why == "sending it calls save, or fails"
    fewer = only(with_pallet(calls=(item("pay", 3, ("to", U32)), lend)))
    assert fewer.why == "it takes 1 arguments, took 2"
    wider = only(with_pallet(calls=(item("pay", 3, ("to", U64), ("kind", KIND)), lend)))
    assert wider.why == "to: u32 became u64"
    swapped = only(with_pallet(calls=(item("pay", 3, ("kind", U32), ("to", KIND)), lend)))
    assert swapped.why == "the same fields in another order"
    called = only(with_pallet(calls=(item("pay", 3, ("target", U32), ("kind", KIND)), lend)))
    assert (called.breaks, called.why) == (False, "to is called target")


def test_events_and_errors_are_read_by_their_index() -> None:
    paid, lent = BANK.events
    assert only(with_pallet(events=(paid, replace(lent, index=2)))).breaks is True
    assert only(with_pallet(events=(paid,))).breaks is False, "nobody sends it any more"
    changes = {it.name: it for it in found(with_pallet(errors=(PalletItem("Late", 0),)))}
    assert changes["Bank.Broke"].why == "old clients take Late for it"
    assert (changes["Bank.Late"].what, changes["Bank.Late"].breaks) == ("reindexed", True)


def test_a_constant_may_change_its_value() -> None:
    (fee,) = BANK.constants
    change = only(with_pallet(constants=(replace(fee, value=b"\x06\x00\x00\x00"),)))
    assert (change.before, change.after, change.breaks) == ("0x05000000", "0x06000000", False)
    assert only(with_pallet(constants=())).breaks is True
    assert found(with_pallet(constants=(replace(fee, type=ref(U64)),)))[0].why == "u32 became u64"


def test_what_transactions_carry_breaks_all_of_them() -> None:
    nonce, era = EXTRINSIC.extensions
    cases = [
        ("added", replace(EXTRINSIC, extensions=(nonce, era, TransactionExtension("Tip", ref(U32), ref(U32))))),
        ("removed", replace(EXTRINSIC, extensions=(nonce,))),
        ("changed", replace(EXTRINSIC, extensions=(era, nonce))),
        ("changed", replace(EXTRINSIC, extensions=(replace(nonce, type=ref(U64)), era))),
        ("changed", replace(EXTRINSIC, extensions=(replace(nonce, additional=ref(U64)), era))),
        ("changed", replace(EXTRINSIC, address=ref(U64))),
        ("changed", replace(EXTRINSIC, versions=(5,))),
    ]
    for what, extrinsic in cases:
        change = only(replace(BEFORE, extrinsic=extrinsic))
        assert (change.what, change.breaks) == (what, True)
    assert only(replace(BEFORE, extrinsic=replace(EXTRINSIC, versions=(4, 5)))).breaks is False


def test_runtime_apis_come_go_and_change() -> None:
    (total,) = API.functions
    assert only(replace(BEFORE, apis=())).breaks is True
    assert only(replace(BEFORE, apis=(API, ApiMetadata("Other", ())))).breaks is False
    assert only(replace(BEFORE, apis=(replace(API, functions=()),))).why == "calls of it fail"
    wider = replace(API, functions=(replace(total, output=ref(U64)),))
    assert only(replace(BEFORE, apis=(wider,))).why == "output: u32 became u64"


def test_a_deprecation_is_told_and_breaks_nobody() -> None:
    pay, lend = BANK.calls
    old = replace(pay, deprecation=Deprecation("Use lend.", "9"))
    assert str(only(with_pallet(calls=(old, lend)))) == "call Bank.pay deprecated (Use lend., since 9)"


def test_types_by_name_are_compared_by_their_text() -> None:
    before = read_metadata(named_metadata(12))
    (empty, bank), (pay,) = before.pallets, before.pallets[1].calls
    spelled = replace(pay, fields=(NamedType("to", TypeRef("<T as Trait>::AccountId")), pay.fields[1]))
    same = replace(before, pallets=(empty, replace(bank, calls=(spelled,))))
    assert found(same, before) == []
    wider = replace(pay, fields=(pay.fields[0], NamedType("sum", TypeRef("u64"))))
    change = only(replace(before, pallets=(empty, replace(bank, calls=(wider,)))), before)
    assert (change.breaks, change.why) == (True, "sum: u32 became u64")


def test_named_and_described_types_are_not_compared() -> None:
    changes = found(read_metadata(portable_metadata(14)), read_metadata(named_metadata(13)))
    told = {(it.about, it.name): it for it in changes}
    assert told["metadata", "types"].why == "types are not compared"
    assert "became" not in " ".join(it.why for it in changes)
    assert told["call", "Bank.pay"].what == "reindexed"


def version(spec: int, transaction: int, **apis: int) -> RuntimeVersion:
    ids = {api_id(name): number for name, number in apis.items()}
    return RuntimeVersion("bank", "relaycast", 1, spec, 1, ids, transaction, 1)


def test_versions_and_apis_are_part_of_an_upgrade() -> None:
    old, new = version(1, 1, Core=4, BabeApi=2, Gone=1), version(2, 2, Core=5, BabeApi=2, AuraApi=1)
    changes = {(it.about, it.name): it for it in upgrade((old, BEFORE), (new, BEFORE)).changes}
    assert changes["version", "spec_version"].breaks is False
    assert changes["version", "transaction_version"].breaks is True
    assert changes["runtime api", "Core"].after == "version 5"
    assert changes["runtime api", "AuraApi"].what == "added"
    assert changes["runtime api", f"0x{api_id('Gone').hex()}"].breaks is True
    assert len(changes) == 5


def test_a_version_that_hides_a_change_is_noted() -> None:
    after = with_pallet(calls=BANK.calls[1:])
    quiet = upgrade((version(1, 1), BEFORE), (version(1, 1), after))
    assert quiet.breaking == 1
    assert quiet.notes == (
        "transaction_version stays 1, although 1 change is of what transactions are made of",
        "spec_version stays 1: clients keep the metadata that they know",
    )
    assert upgrade((version(1, 1), BEFORE), (version(2, 2), after)).notes == ()
