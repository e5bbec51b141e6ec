"""``relaycast predict``: what a subscription costs, by closed forms, before anything is simulated."""

import json as json_text
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.predict.block import BUDGET_BYTES
from relaycast.predict.closed_forms import MAX_KEYS, MAX_VALUE_BYTES, OutOfRange, checked
from relaycast.predict.ground import GROUNDS, MODELLED
from relaycast.refusal import BadInput, nearest, shown

if TYPE_CHECKING:
    from relaycast.predict.block import Prediction

BLOCK_SECONDS = 6.0
MAX_TRIES = 1_000
MAX_TRIE_KEYS = 10_000_000
"""Keys of all tries together that ``--measure`` builds."""

ScenarioName = Annotated[
    str | None, Parameter(help="a scenario file, the name of a preset, or -, in place of --keys and what follows it")
]
WANTED = {
    "--keys": "keys that the publisher has",
    "--subscribed": "of them, keys that the parachain reads",
    "--value": "bytes of a value; several sizes take turns",
}
"""Options that are needed without a scenario."""

KeyCount = Annotated[int | None, Parameter(name="--keys", help=WANTED["--keys"])]
Subscribed = Annotated[int | None, Parameter(name="--subscribed", help=WANTED["--subscribed"])]
Value = Annotated[list[int] | None, Parameter(name="--value", help=WANTED["--value"], consume_multiple=True)]
Updated = Annotated[int | None, Parameter(name="--updated", help="subscribed keys that are new in a block, else all")]
Elsewhere = Annotated[int, Parameter(name="--elsewhere", help="keys that nobody here reads, new in the same block")]
Budget = Annotated[int, Parameter(name="--budget", help="bytes that pub-sub may use of a block")]
Seconds = Annotated[float, Parameter(name="--block-seconds", help="time between the parachain's blocks")]
GroundName = Annotated[str, Parameter(name="--ground", help="relay chain state: modelled, kusama, or bare for none")]
Measure = Annotated[
    int, Parameter(name="--measure", help="number of exact tries to build; their mean is printed beside")
]

OPTIONS = {"value_bytes": "--value", "budget_bytes": "--budget"}
"""How an argument of the formulas is called here, where it is not by its name."""


def predict(
    scenario: ScenarioName = None,
    /,
    *,
    keys: KeyCount = None,
    subscribed: Subscribed = None,
    value: Value = None,
    updated: Updated = None,
    elsewhere: Elsewhere = 0,
    budget: Budget = BUDGET_BYTES,
    block_seconds: Seconds = BLOCK_SECONDS,
    ground: GroundName = MODELLED.name,
    measure: Measure = 0,
    json: Json = False,
) -> ExitCode:
    """Estimate at once what a subscription costs: proof bytes, node cache, keys and updates in a budget.

    A proof is made of branches (3 bytes, and 33 for each child), leaves and values. A leaf has 2 bytes, the rest of the
    key, and the stored entry: the value and some 9 bytes. An entry of more than 32 bytes is a node of its own, and its
    leaf has the hash.

    The publisher's part is exact in expectation for keys that are hashes. The static keys and the way to the publisher
    depend on the relay chain's whole state: --ground names where they were measured. --measure holds the formulas
    against exact tries. For a SCENARIO, each reader's average block is estimated with the node cache and without it.

    Example: relaycast predict oracle

    Example: relaycast predict --keys 1000 --subscribed 100 --value 16 --updated 10

    Example: relaycast predict --keys 24 --subscribed 24 --value 1620 776 --updated 2 --measure 20
    """
    from relaycast.predict.block import prediction  # noqa: PLC0415

    if ground not in GROUNDS:
        raise BadInput("--ground", shown(ground), "the name of a relay chain state", nearest(ground, list(GROUNDS)))
    counts = {"--keys": keys, "--subscribed": subscribed, "--value": value or None}
    if scenario is not None:
        others = {"--updated": updated, "--elsewhere": elsewhere or None, "--measure": measure or None}
        others |= {"--budget": None if budget == BUDGET_BYTES else budget}
        others |= {"--block-seconds": None if block_seconds == BLOCK_SECONDS else round(block_seconds)}
        for name, given in (counts | others).items():
            if given is not None:
                wanted = "a scenario alone, or --keys, --subscribed and --value"
                raise BadInput(name, f"a value beside {shown(scenario)}", wanted)
        return _scenario(scenario, ground, json=json)
    if keys is None or subscribed is None or not value:
        name = next(name for name, given in counts.items() if given is None)
        raise BadInput("predict", f"no {name}", f"{WANTED[name]}, or a scenario (see relaycast predict --help)")
    _check(keys, value, measure, block_seconds)
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
        from relaycast.cli.tables.predict import print_prediction  # noqa: PLC0415

        print_prediction(found, measured, measure, block_seconds)
    return ExitCode.FINE


def _scenario(name: str, ground: str, *, json: bool) -> ExitCode:
    from relaycast.predict.scenario import predicted_readers  # noqa: PLC0415
    from relaycast.scenario.files import load_named  # noqa: PLC0415

    scenario = load_named(name, "predict")
    readers = predicted_readers(scenario, GROUNDS[ground])
    if json:
        import msgspec  # noqa: PLC0415

        from relaycast.predict.block import SCHEMA_VERSION  # noqa: PLC0415

        print(json_text.dumps({"schema": SCHEMA_VERSION, "ground": ground, "readers": msgspec.to_builtins(readers)}))
        return ExitCode.FINE
    if not readers:
        raise BadInput(name, "no parachain that subscribes", "a scenario with a reader")
    from relaycast.cli.tables.predict import print_readers  # noqa: PLC0415

    sizes = {publisher: rule.value_bytes for publisher, rule in scenario.publishers().items()}
    print_readers(readers, sizes, ground)
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
