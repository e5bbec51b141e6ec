"""E17: what a second core gives to proofs in bulk, on Spark and by plain processes.

The proofs and their bytes follow from the seed and are the same however many cores there are; how long they took is
measured, and differs from run to run.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale

CORES = (1, 2)
KEYS_A_PROOF, TRIE_KEYS = 10, 100_000
PROOFS = 100_000
"""At both scales: starting takes longer than making them."""

SPARK, PROCESSES = "Spark", "processes"


class Scaling(Row, frozen=True, kw_only=True):
    """All proofs made, verified and counted once; times in seconds."""

    what: str
    cores: int
    trie_keys: int
    keys_a_proof: int
    proofs: int
    proof_bytes: int
    seconds: float
    session_seconds: float
    """Until a session was there, and the first job in it was done; not in ``seconds``."""

    proofs_per_second: float


def measure(scale: Scale) -> list[Scaling]:
    """Make and verify the proofs by both, in turns, with one core and with two; raises ``SparkUnavailable``."""
    from relaycast.bench.proof_rates import ProofTerms, compared  # noqa: PLC0415 - loads the compiler
    from relaycast_spark.session import require_spark  # noqa: PLC0415
    from relaycast_trie import warm_up  # noqa: PLC0415

    require_spark()
    warm_up()
    terms = ProofTerms(PROOFS, KEYS_A_PROOF, TRIE_KEYS, scale.seed)
    rates = [rate for cores in CORES for rate in compared(terms, cores=cores, rounds=1)]
    return [
        Scaling(
            what=rate.what,
            cores=rate.cores,
            trie_keys=TRIE_KEYS,
            keys_a_proof=KEYS_A_PROOF,
            proofs=rate.proofs,
            proof_bytes=rate.proof_bytes,
            seconds=rate.seconds,
            session_seconds=round(rate.session_seconds + rate.first_job_seconds, 3),
            proofs_per_second=round(rate.proofs_per_second, 1),
        )
        for rate in rates
    ]


def answer(rows: Sequence[Scaling]) -> str:
    """Say what the second core gives, and what Spark takes."""
    found = {(row.what, row.cores): row for row in rows}
    one, two, plain = found[SPARK, 1], found[SPARK, 2], found[PROCESSES, 2]
    same = "the same" if len({row.proof_bytes for row in rows}) == 1 else "NOT the same"
    return (
        f"On two cores Spark makes and verifies {two.proofs_per_second:,.0f} proofs a second, "
        f"{one.seconds / two.seconds:.2f} times as many as on one; for plain processes it is "
        f"{found[PROCESSES, 1].seconds / plain.seconds:.2f} times; on two cores, Spark takes "
        f"{two.seconds / plain.seconds:.2f} times the time of plain processes, after {two.session_seconds:.0f} s to "
        f"start; all proofs are {same} {two.proof_bytes:,} bytes each time ({two.proofs:,} proofs of "
        f"{two.keys_a_proof} keys of {two.trie_keys:,}; measured once on the machine that made this page, so that "
        "another run gives other times)."
    )


def chart(rows: Sequence[Scaling]) -> Chart:
    """Draw proofs a second by cores."""
    return Chart(
        title="Proofs made and verified in a second",
        mark="bar",
        x=Axis(field="cores", title="cores", names=True, order=tuple(map(str, CORES))),
        y=Axis(field="rate", title="proofs a second"),
        colour=Axis(field="what", title="", names=True, order=(PROCESSES, SPARK)),
        points=[{"cores": str(row.cores), "rate": row.proofs_per_second, "what": row.what} for row in rows],
    )


EXPERIMENT = Experiment(
    name="E17",
    slug="spark-scaling",
    question="What does a second core give?",
    row=Scaling,
    measure=measure,
    answer=answer,
    chart=chart,
    measured=("seconds", "session_seconds", "proofs_per_second"),
    notes=(
        "Times are measured and stand in a table of their own, e17-spark-scaling-measured.parquet; sentence and chart "
        "are made from them. Proofs and bytes are the same bytes in every run, whatever the cores.",
        "Short runs say little of scaling, and other work on the machine shows in them. The best of "
        "`relaycast bench spark` on this machine of two cores, with a million proofs, were 40,425 a second on one core "
        "and 72,929 on two. Plain processes made 41,159 and 75,002 a second.",
        "`relaycast bench spark --cores 16` measures more cores; it takes Java 17 and the extra spark.",
    ),
)
