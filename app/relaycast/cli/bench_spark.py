"""``relaycast bench spark``: proofs and runs on Spark, beside plain processes and the local engine."""

import json as json_text
import platform
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from relaycast.cli.exit_code import ExitCode
from relaycast.out_file import check_file, write_text
from relaycast.refusal import BadInput
from relaycast_ledger.outcome import SCHEMA_VERSION

if TYPE_CHECKING:
    from relaycast.bench.proof_rates import ProofRate
    from relaycast.bench.run_rates import RunRate

Count = Annotated[
    int, Parameter(name="--count", help="proofs; 0 for none", validator=validators.Number(gte=0, lte=1_000_000_000))
]
KeysAProof = Annotated[
    int, Parameter(name="--keys", help="keys of each proof", validator=validators.Number(gte=1, lte=10_000))
]
TrieKeys = Annotated[
    int, Parameter(name="--trie-keys", help="keys of the trie", validator=validators.Number(gte=1, lte=10_000_000))
]
Cores = Annotated[
    int,
    Parameter(name="--cores", help="workers; one alone is measured too", validator=validators.Number(gte=1, lte=256)),
]
Rounds = Annotated[
    int,
    Parameter(
        name="--rounds",
        help="how many rounds to run in turns; the best one counts",
        validator=validators.Number(gte=1, lte=100),
    ),
]
Blocks = Annotated[
    int,
    Parameter(name="--blocks", help="blocks of a run; 0 for none", validator=validators.Number(gte=0, lte=1_000_000)),
]
Publishers = Annotated[
    int, Parameter(name="--publishers", help="publishers of the run", validator=validators.Number(gte=1, lte=900))
]
Subscribers = Annotated[
    int, Parameter(name="--subscribers", help="subscribers of the run", validator=validators.Number(gte=1, lte=900))
]
Changed = Annotated[
    int | None,
    Parameter(
        name="--changed",
        help="of its ten keys, those that a publisher sends in a block; all unless given",
        validator=validators.Number(gte=1, lte=10),
    ),
]
Seed = Annotated[
    int, Parameter(name="--seed", help="trie and keys follow from it", validator=validators.Number(gte=0, lt=2**63))
]
JsonFile = Annotated[Path | None, Parameter(name="--json", help="a file to write the same to, for programs")]


def spark(
    *,
    count: Count = 1_000_000,
    keys: KeysAProof = 10,
    trie_keys: TrieKeys = 100_000,
    cores: Cores = 2,
    rounds: Rounds = 1,
    blocks: Blocks = 0,
    publishers: Publishers = 20,
    subscribers: Subscribers = 10,
    changed: Changed = None,
    seed: Seed = 1,
    json: JsonFile = None,
) -> ExitCode:
    """Make and verify proofs on Spark and by plain processes in turns, with all cores and with one; run blocks too.

    Keys are drawn from a random trie, proofs made, verified and counted in workers; starting Spark is told apart.
    A run of --blocks goes through the local engine and through Spark, with the peak memory of every process.

    Example: relaycast bench spark --count 20000 --json spark.json
    """
    if json is not None:
        check_file(json, "--json")
    if not count and not blocks:
        raise BadInput("--count", "0 without --blocks", "proofs to make, blocks to run, or both")
    from relaycast.bench.proof_rates import ProofTerms  # noqa: PLC0415 - loads the compiler
    from relaycast_spark.session import require_spark  # noqa: PLC0415

    require_spark()
    report: dict[str, Any] = {"schema": SCHEMA_VERSION, "python": platform.python_version(), "seed": seed}
    if count:
        report |= {"trie_keys": trie_keys, "keys_a_proof": keys}
        report |= _proofs(ProofTerms(count, keys, trie_keys, seed), cores, rounds)
    if blocks:
        from relaycast.bench.run_rates import market  # noqa: PLC0415

        report |= {"publishers": publishers, "subscribers": subscribers, "changed": changed}
        scenario = market(blocks, publishers, subscribers, changed=changed)
        report["runs"] = [rate.as_dict() for rate in _runs(scenario, cores)]
    if json is not None:
        write_text(json, json_text.dumps(report, indent=1) + "\n", "--json")
    return ExitCode.FINE


def _proofs(terms: Any, cores: int, rounds: int) -> dict[str, Any]:
    from relaycast.bench.proof_rates import compared  # noqa: PLC0415
    from relaycast_trie import warm_up  # noqa: PLC0415

    warm_up()
    print(_line("", "cores", "proofs", "seconds", "proofs/s", "MB/s", "start", "first job"))
    rates: list[ProofRate] = []
    for workers in sorted({1, cores}):
        for rate in compared(terms, cores=workers, rounds=rounds):
            rates.append(rate)
            print(_proof_line(rate), flush=True)
    by_kind = {(rate.what, rate.cores): rate.seconds for rate in rates}
    processes, on_spark = (by_kind[rate.what, cores] for rate in rates[-2:])
    told: dict[str, Any] = {"proofs": [rate.as_dict() for rate in rates]}
    told["spark_over_processes"] = round(on_spark / processes, 3)
    print(f"Spark takes {told['spark_over_processes']:.2f} times as long as plain processes, its start apart", end="")
    if cores > 1:
        told["scaling"] = {
            rate.what: round(by_kind[rate.what, 1] / by_kind[rate.what, cores], 3) for rate in rates[-2:]
        }
        print(f"; with {cores} cores {told['scaling'][rates[-1].what]:.2f} times as fast as with one", end="")
    print(flush=True)
    return told


def _runs(scenario: Any, cores: int) -> "Iterator[RunRate]":
    from relaycast.bench.run_rates import by_local_engine, by_segments  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="relaycast-bench-") as folder:
        by_both: tuple[Callable[[], RunRate], ...] = (
            lambda: by_local_engine(scenario, Path(folder) / "local"),
            lambda: by_segments(scenario, Path(folder) / "spark", cores=cores),
        )
        for run in by_both:
            rate = run()
            peaks = ", ".join(f"{name} {size:,} MiB" for name, size in sorted(rate.peak_mebibytes.items()))
            print(
                f"{rate.what}, {rate.cores} core{'s' if rate.cores > 1 else ''}: {rate.blocks:,} blocks in "
                f"{rate.seconds:,.1f} s, {rate.blocks_per_second:.1f}/s; peaks: {peaks}",
                flush=True,
            )
            yield rate


def _proof_line(rate: "ProofRate") -> str:
    starts = ["" if not it else f"{it:.1f}" for it in (rate.session_seconds, rate.first_job_seconds)]
    speed = f"{rate.proofs_per_second:,.0f}", f"{rate.bytes_per_second / 1e6:,.1f}"
    return _line(rate.what, str(rate.cores), f"{rate.proofs:,}", f"{rate.seconds:.2f}", *speed, *starts)


def _line(name: str, *cells: str) -> str:
    return "".join([f"{name:10}", *(f"{cell:>13}" for cell in cells)]).rstrip()
