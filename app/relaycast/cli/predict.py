"""``relaycast predict``: what a subscription costs, by closed forms, before anything is simulated."""

import json as json_text
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.predict.block import BUDGET_BYTES
from relaycast.predict.closed_forms import MAX_KEYS, MAX_VALUE_BYTES, OutOfRange, checked
from relaycast.predict.ground import GROUNDS, MODELLED
from relaycast.refusal import BadInput, nearest, shown
from relaycast.terminal import counted

if TYPE_CHECKING:
    from rich.console import Console

    from relaycast.predict.block import Prediction

MAX_TRIES = 1_000
MAX_TRIE_KEYS = 10_000_000
"""Of all tries together that ``--measure`` builds."""

KeyCount = Annotated[int, Parameter(name="--keys", help="keys that the publisher has")]
Subscribed = Annotated[int, Parameter(name="--subscribed", help="of them, keys that the parachain reads")]
Value = Annotated[
    list[int], Parameter(name="--value", help="bytes of a value; several sizes take turns", consume_multiple=True)
]
Updated = Annotated[int | None, Parameter(name="--updated", help="subscribed keys that are new in a block, else all")]
Elsewhere = Annotated[int, Parameter(name="--elsewhere", help="keys that nobody here reads, new in the same block")]
Budget = Annotated[int, Parameter(name="--budget", help="bytes that pub-sub may use of a block")]
Seconds = Annotated[float, Parameter(name="--block-seconds", help="time between the parachain's blocks")]
GroundName = Annotated[str, Parameter(name="--ground", help="relay chain state: modelled, kusama, or bare for none")]
Measure = Annotated[int, Parameter(name="--measure", help="build so many exact tries, and print their mean beside")]

COLUMNS = ("", "from nothing\nnodes", "\nbytes", "what is new\nnodes", "\nbytes")

OPTIONS = {"value_bytes": "--value", "budget_bytes": "--budget"}
"""How an argument of the formulas is called here, where it is not by its name."""


def predict(
    *,
    keys: KeyCount,
    subscribed: Subscribed,
    value: Value,
    updated: Updated = None,
    elsewhere: Elsewhere = 0,
    budget: Budget = BUDGET_BYTES,
    block_seconds: Seconds = 6.0,
    ground: GroundName = MODELLED.name,
    measure: Measure = 0,
    json: Json = False,
) -> ExitCode:
    """Say at once, by closed forms, what a subscription costs: proof bytes, node cache, keys and updates in a budget.

    A proof is made of branches (3 bytes, and 33 for each child), of leaves (2 bytes, the rest of the key, and the
    stored entry, which is the value and some 9 bytes) and of values outside: an entry of more than 32 bytes is a node
    of its own, of which its leaf has the hash.

    The publisher's part is exact in expectation for keys that are hashes; the static keys and the way to the publisher
    depend on the relay chain's whole state: --ground names where they were measured. --measure holds the formulas
    against exact tries.

    Example: relaycast predict --keys 1000 --subscribed 100 --value 16 --updated 10

    Example: relaycast predict --keys 24 --subscribed 24 --value 1620 776 --updated 2 --measure 20
    """
    from relaycast.predict.block import prediction  # noqa: PLC0415

    _check(keys, value, measure, block_seconds)
    if ground not in GROUNDS:
        raise BadInput("--ground", shown(ground), "the name of a relay chain state", nearest(ground, list(GROUNDS)))
    try:
        found = prediction(
            keys,
            subscribed,
            value,
            updated=updated,
            elsewhere=elsewhere,
            budget_bytes=budget,
            block_seconds=block_seconds,
            ground=GROUNDS[ground],
        )
    except OutOfRange as error:
        raise _refused(error) from None
    measured = _measured(found, measure)
    if json:
        _print_json(found, measured, measure)
    else:
        _print(found, measured, measure, block_seconds)
    return ExitCode.FINE


def _refused(error: OutOfRange) -> BadInput:
    expected = error.expected
    for name in ("keys", "subscribed"):
        expected = expected.replace(f"{name} =", f"--{name} =").replace(f"{name} -", f"--{name} -")
    return BadInput(OPTIONS.get(error.name, f"--{error.name}"), str(error.got), f"a number {expected}")


def _check(keys: int, value: list[int], measure: int, block_seconds: float) -> None:
    try:
        checked("keys", keys, 1, MAX_KEYS)
        for size in value:
            checked("value_bytes", size, 0, MAX_VALUE_BYTES)
        checked("measure", measure, 0, MAX_TRIES)
    except OutOfRange as error:
        raise _refused(error) from None
    if not 0 < block_seconds <= 3_600:
        raise BadInput("--block-seconds", str(block_seconds), "a number above 0, to 3600")
    if measure * keys > MAX_TRIE_KEYS:
        got = f"{measure} tries of {keys:,} keys"
        raise BadInput("--measure", got, f"at most {MAX_TRIE_KEYS:,} keys in all of them")


def _measured(it: "Prediction", tries: int) -> tuple[float, float] | None:
    """Return the mean bytes of full and delta proofs of exact tries."""
    if not tries:
        return None
    from relaycast.predict.measured import measured_proofs  # noqa: PLC0415 - loads the trie room

    found = [
        measured_proofs(it.keys, it.subscribed, it.updated, it.value_bytes, elsewhere=it.elsewhere, seed=seed)
        for seed in range(tries)
    ]
    return sum(one.full_bytes for one in found) / tries, sum(one.delta_bytes for one in found) / tries


def _print_json(it: "Prediction", measured: tuple[float, float] | None, tries: int) -> None:
    import msgspec  # noqa: PLC0415

    from relaycast.predict.block import SCHEMA_VERSION  # noqa: PLC0415

    figures = {"schema": SCHEMA_VERSION, **msgspec.to_builtins(it)}
    if measured is not None:
        figures["measured"] = {"tries": tries, "full_bytes": measured[0], "delta_bytes": measured[1]}
    print(json_text.dumps(figures))


def _print(it: "Prediction", measured: tuple[float, float] | None, tries: int, block_seconds: float) -> None:
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    out = console()
    sizes = " / ".join(f"{size:,}" for size in it.value_bytes)
    elsewhere = f", {it.elsewhere:,} new elsewhere" if it.elsewhere else ""
    out.print(
        f"{it.subscribed:,} of {it.keys:,} keys, values of {sizes} bytes, {it.updated:,} new{elsewhere}", style="bold"
    )
    out.print()
    print_table(out, COLUMNS, _made_of(it, measured), right=COLUMNS[1:])
    if measured is not None:
        out.print(f"measured: the mean of {counted(tries, 'exact trie')}; off: the formula beside it")
    out.print()
    _print_block(out, it, block_seconds)


def _print_block(out: "Console", it: "Prediction", block_seconds: float) -> None:
    cache, budget, ground = it.cache, it.budget, it.ground
    out.print(
        f"relay proof  {it.block_bytes:,} bytes a block, {it.first_block_bytes:,} the first: {ground.static_bytes:,} "
        f"for static keys and {ground.top_bytes:,} for the way to the publisher ({ground.name})",
        markup=False,
    )
    verdict = "pays" if cache.pays else "does not pay"
    limit = f"up to {counted(cache.break_even_updated, 'new key')}" if cache.break_even_updated else "for no new key"
    out.print(
        f"node cache   {cache.nodes:,.0f} nodes, {cache.state_bytes:,} bytes of state; {cache.with_cache_bytes:,} "
        f"bytes a block with its upkeep of {cache.upkeep_bytes:,}, {cache.without_cache_bytes:,} without: "
        f"it {verdict} ({limit})",
        markup=False,
    )
    alone = f"{budget.keys_alone:,} of a publisher with no others"
    keys = f"all {it.keys:,} keys" if budget.keys == it.keys else f"{budget.keys:,} of the {it.keys:,} keys"
    every = "all of them" if budget.updated == it.subscribed else f"{budget.updated:,}"
    out.print(
        f"budget       {budget.budget_bytes:,} bytes hold {keys} from nothing ({alone}); of the {it.subscribed:,} "
        f"read, {every} may be new every {block_seconds:g} s: {budget.updates_per_second:,.2f} updates a second",
        markup=False,
    )


def _made_of(it: "Prediction", measured: tuple[float, float] | None) -> Iterator[tuple[str, ...]]:
    """Yield what both proofs are made of, row by row."""
    proofs, keys = (it.full, it.delta), (it.subscribed, it.updated)
    yield ("branches", *_pairs((f"{one.branches:,.1f}", f"{one.branch_bytes:,}") for one in proofs))
    yield ("leaves", *_pairs((f"{one.leaves:,}", f"{one.leaf_bytes:,}") for one in proofs))
    yield ("values outside", *_pairs((f"{one.values:,}", f"{one.value_bytes:,}") for one in proofs))
    yield ("proof", *_pairs((f"{one.nodes:,.1f}", f"{one.proof_bytes:,}") for one in proofs))
    shares = (f"{one.proof_bytes / count:,.0f}" if count else "-" for one, count in zip(proofs, keys, strict=True))
    yield ("  a key", *_pairs(("", share) for share in shares))
    if measured is not None:
        yield ("measured", *_pairs(("", f"{size:,.0f}") for size in measured))
        sides = zip(proofs, measured, strict=True)
        yield ("  off", *_pairs(("", f"{one.proof_bytes / size - 1:+.1%}" if size else "") for one, size in sides))


def _pairs(cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (cell for pair in cells for cell in pair)
