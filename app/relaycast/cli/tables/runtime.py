"""What ``relaycast runtime`` prints for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relaycast.refusal import short
from relaycast.terminal import console, counted, print_table, say

if TYPE_CHECKING:
    from rich.console import Console

    from relaycast_wasm.metadata.model import Metadata, NamedType, PalletItem, PalletMetadata, StorageEntry
    from relaycast_wasm.metadata.upgrade import Upgrade

COUNTED = ("storage", "calls", "events", "errors", "constants")
SHOWN_BYTES = 16
"""First bytes of a constant's value, which are printed."""


def print_runtime(summary: dict[str, Any], metadata: "Metadata") -> None:
    """Print versions and size, runtime APIs, and a table of pallets."""
    out = console()
    packed = summary["code_bytes"] != summary["wasm_bytes"]
    size = f"{summary['code_bytes']:,} bytes" + (f", {summary['wasm_bytes']:,} decompressed" if packed else "")
    missing = ", ".join(summary["missing_imports"])
    rows = {
        "spec": f"{short(summary['spec_name'])} {summary['spec_version']}",
        "implementation": f"{short(summary['impl_name'])} {summary['impl_version']}",
        "authoring version": summary["authoring_version"],
        "transaction version": summary["transaction_version"],
        "state version": summary["state_version"],
        "code": f"{size}, {summary['code_hash']}",
        "metadata": f"V{metadata.version}, {counted(len(metadata.pallets), 'pallet')}",
        "missing imports": missing or "none",
        "runtime APIs": ", ".join(f"{it['name'] or it['id']} {it['version']}" for it in summary["apis"]),
    }
    for name, value in rows.items():
        say(f"{name:<20} {value}", hanging=21)
    out.print()
    table = [
        (str(it.index), it.name, *(str(len(getattr(it, name))) for name in COUNTED))
        for it in sorted(metadata.pallets, key=lambda it: it.index)
    ]
    print_table(out, ("index", "pallet", *COUNTED), table, right=("index", *COUNTED))


def print_pallet(pallet: "PalletMetadata") -> None:
    """Print all that a pallet has."""
    out = console()
    out.print(f"{pallet.name}, index {pallet.index}, storage prefix {pallet.prefix or 'none'}", markup=False)
    _print_rows(out, "storage", ("item", "holds", "absent"), [_entry(it) for it in pallet.storage])
    for title, items in (("calls", pallet.calls), ("events", pallet.events), ("errors", pallet.errors)):
        _print_rows(out, title, ("index", "name", "fields"), [_item(it) for it in items])
    constants = [(it.name, it.type.text, _shown(it.value)) for it in pallet.constants]
    _print_rows(out, "constants", ("name", "type", "value"), constants)
    views = [(it.name, _fields(it.inputs), it.output.text) for it in pallet.view_functions]
    _print_rows(out, "view functions", ("name", "takes", "gives"), views)


def print_changes(upgrade: "Upgrade", before: str, after: str) -> None:
    """Print every change on a line, those that break clients marked."""
    for change in upgrade.changes:
        mark, style = ("breaks", "red") if change.breaks else ("", "")
        say(f"{mark:<7}{change}", style=style, hanging=7)
    for note in upgrade.notes:
        say(f"{'note':<7}{note}", style="yellow", hanging=7)
    breaking = f"{upgrade.breaking:,} of them {'breaks' if upgrade.breaking == 1 else 'break'} clients"
    told = f"{before} -> {after}: {counted(len(upgrade.changes), 'change')}" + (
        f", {breaking}" if upgrade.changes else ""
    )
    say(told, style="red" if upgrade.breaking else "green")


def _print_rows(out: "Console", title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        out.print()
        print_table(out, columns, rows, title=title)


def _entry(entry: "StorageEntry") -> tuple[str, str, str]:
    keys = ", ".join(f"{hasher}({key.text})" for hasher, key in zip(entry.hashers, entry.keys, strict=False))
    holds = f"{keys} => {entry.value.text}" if entry.keys else entry.value.text
    return entry.name, holds, _shown(entry.default) if entry.modifier == "Default" else entry.modifier.lower()


def _item(item: "PalletItem") -> tuple[str, str, str]:
    return str(item.index), f"{item.name}{' (deprecated)' if item.deprecation else ''}", _fields(item.fields)


def _fields(fields: "Sequence[NamedType]") -> str:
    return ", ".join(it.type.text if it.name is None else f"{it.name}: {it.type.text}" for it in fields)


def _shown(value: bytes) -> str:
    rest = len(value) - SHOWN_BYTES
    return f"0x{value[:SHOWN_BYTES].hex()}" + (f".. ({len(value)} bytes)" if rest > 0 else "")
