"""The suite's page says what the code does: indices of calls, events and instructions, storage, weights, errors."""

import json
import re
from importlib import resources
from typing import Any

import pytest

from pallets.block_vectors import event_names
from pallets.broadcaster_vectors import LIMITS, relay_types
from relaycast_node.metadata.declarations import DeclaredPallet
from relaycast_pallets import POLKADOT
from relaycast_pallets.broadcaster import errors
from relaycast_pallets.broadcaster.errors import BroadcasterError
from relaycast_trie import EMPTY_ROOT
from relaycast_xcm import exceptions
from relaycast_xcm.exceptions import ProcessMessageError
from relaycast_xcm.instructions import INSTRUCTION_NAMES, PUBLISH_INDEX
from relaycast_xcm.location import JUNCTION
from relaycast_xcm.primitives import DbWeight, Weight

PAGE = resources.files("relaycast_spec.vectors").joinpath("README.md").read_text(encoding="utf-8")
TYPES: dict[str, Any] = json.loads(resources.files("relaycast_spec").joinpath("types.json").read_bytes())


OFF_IN_ALL_VECTORS = {"PublishCounts", "TooManyPublishes"}
"""Names that belong to the limit on publications per block, which no vector sets."""


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the tables in the section with this heading, without their head rows."""
    section = re.split(r"^#{2,3} ", PAGE.partition(f"{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [row for at, row in enumerate(found) if not set("".join(row)) <= {"-"} and not _is_head(found, at)]


def _is_head(found: list[list[str]], at: int) -> bool:
    return at + 1 < len(found) and set("".join(found[at + 1])) <= {"-"}


def pallet(name: str) -> DeclaredPallet:
    (found,) = (it for it in relay_types().pallets if it.name == name)
    return found


def test_calls_have_the_bytes_that_the_page_gives_them() -> None:
    broadcaster = pallet("Broadcaster")
    told = {row[0].strip("`"): row[1].strip("`").partition("(")[0] for row in rows("### Calls")}
    assert told == {f"{broadcaster.index:02x}{index:02x}": call.name for index, call in enumerate(broadcaster.calls)}
    arguments = [re.findall(r"(\w+): ", row[1]) for row in rows("### Calls")]
    assert arguments == [list(call.arguments) for call in broadcaster.calls]


def test_events_have_the_bytes_that_the_page_gives_them() -> None:
    told = {row[0].strip("`"): row[1].strip("`").removeprefix("Balances::") for row in rows("### Events")}
    declared = {
        f"{it.index:02x}{index:02x}": event.__name__
        for it in (pallet("Broadcaster"), pallet("Balances"))
        for index, event in enumerate(it.events)
    }
    assert told.items() <= declared.items()
    assert {name for code, name in declared.items() if code.startswith("c8")} <= set(told.values())


def test_storage_has_the_items_that_the_page_gives_it() -> None:
    told = {row[0].strip("`") for row in rows("### Storage")}
    items = {storage.item.name[1] for storage in pallet("Broadcaster").storage}
    assert items - OFF_IN_ALL_VECTORS == told - {"System::Account", "Balances::Holds", "Balances::TotalIssuance"}


def test_instructions_have_the_indices_that_the_page_gives_them() -> None:
    tables = [row for row in rows("## 5. XCM") if row[0].split()[0].isdecimal()]
    junctions = {int(row[0]): row[1].strip("`") for row in tables[: len(JUNCTION.variants)]}
    assert junctions == {index: struct.type_name for index, struct in JUNCTION.variants.items()}
    told = {int(row[0].split()[0]): row[1].strip("`") for row in tables[len(junctions) :]}
    assert told.pop(PUBLISH_INDEX) == "Publish"
    assert len(told) == 16
    assert told.items() <= dict(enumerate(INSTRUCTION_NAMES)).items()


def variants(name: str) -> dict[int, str]:
    return {index: variant for index, variant, *_ in TYPES["types"][name]}


def test_the_types_for_programs_have_the_indices_that_the_code_has() -> None:
    broadcaster = pallet("Broadcaster")
    assert variants("Call") == dict(enumerate(call.name for call in broadcaster.calls))
    assert variants("BroadcasterEvent") == dict(enumerate(event.__name__ for event in broadcaster.events))
    assert variants("BalancesEvent").items() <= dict(enumerate(it.__name__ for it in pallet("Balances").events)).items()
    assert variants("SubscriberEvent").items() <= event_names().items()
    assert variants("Junction") == {index: struct.type_name for index, struct in JUNCTION.variants.items()}
    instructions = variants("Instruction")
    assert instructions.pop(PUBLISH_INDEX) == "Publish"
    assert instructions.items() <= dict(enumerate(INSTRUCTION_NAMES)).items()


def test_the_types_for_programs_name_only_types_that_are_there() -> None:
    plain = r"[uchp]\d+|bytes\d*"
    items = [
        part for item in TYPES["storage"].values() for part in (item["value"], *(kind for _, kind in item["keys"]))
    ]
    for spelled in [*items, *spellings(TYPES["types"])]:
        for name in re.split(r"[*?,]", spelled):
            assert name in TYPES["types"] or re.fullmatch(rf"{plain}|\d*", name), spelled


def spellings(types: Any) -> list[str]:
    """Return every type that types are made of."""
    if isinstance(types, str):
        return [types]
    if isinstance(types, list):
        return [spelled for _, _, *inner in types for one in inner for spelled in spellings(one)]
    return [spelled for one in types.values() for spelled in spellings(one)]


def test_the_items_of_storage_for_programs_are_those_of_the_page() -> None:
    told = {f"{item['pallet']}::{name}" for name, item in TYPES["storage"].items()}
    broadcaster = {row[0].strip("`") for row in rows("### Storage")}
    subscriber = {f"Subscriber::{row[0].strip('`')}" for row in rows("### 9.1 Storage")}
    named = {name if "::" in name else f"Broadcaster::{name}" for name in broadcaster}
    assert told == named | subscriber - {"Subscriber::CachedSizes"}


def summed(terms: str, read: int, write: int) -> int:
    """Return the sum of terms such as ``20,000,000 + 3r + w``."""
    units = {"": 1, "r": read, "w": write}
    found = [re.fullmatch(r"(\d*)([rw]?)", term.strip()) for term in terms.replace(",", "").split("+") if term.strip()]
    return sum(int(term[1] or 1) * units[term[2]] for term in found if term is not None)


@pytest.mark.parametrize(("read", "write"), [(25_000_000, 100_000_000), (0, 0), (3, 7)])
def test_calls_weigh_what_the_page_says(read: int, write: int) -> None:
    count = 3
    for names, formula in rows("### Weights"):
        time, _, proof_size = formula.partition(", proof_size ")
        base, _, each = time.partition("(")
        ref_time = summed(base.rstrip("kn "), read, write) + count * summed(each.partition(")")[0], read, write)
        for name in re.findall(r"`(\w+)`", names):
            call = POLKADOT.weights[name]
            weight = call.at(DbWeight(read, write), **dict.fromkeys(call.slopes, count))
            assert weight == Weight(ref_time, int(proof_size.replace(",", "") or 0)), name


def test_every_error_of_the_pallet_is_named() -> None:
    (row,) = (row for row in rows("## 8. `broadcaster`") if row[1] == "errors of the pallet")
    classes = (it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, BroadcasterError))
    names = {it.__name__ for it in classes} - {"BroadcasterError"} - OFF_IN_ALL_VECTORS
    assert set(re.findall(r"`(\w+)`", row[0])) == names


def test_every_refusal_of_a_barrier_is_named() -> None:
    known = {
        name for name, it in vars(exceptions).items() if isinstance(it, type) and issubclass(it, ProcessMessageError)
    }
    told = set(re.findall(r"`(\w+)`", " ".join(row[1] for row in rows("### Barriers"))))
    assert told & known == {"Unsupported", "BadFormat", "StackLimitReached", "Overweight"}


def test_the_page_names_every_limit_of_the_configuration() -> None:
    assert all(f"`{name}`" in PAGE for name in LIMITS.__struct_fields__)


def test_the_page_gives_the_root_of_the_empty_trie() -> None:
    assert f"0x{EMPTY_ROOT.hex()}" in PAGE
