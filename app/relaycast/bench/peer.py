"""The peer's figures: Rust trie-db 0.32 with blake2b_simd and Substrate's V1 layout, as recorded on one core of a CPU.

By workload, then by keys of the trie and bytes of a value. Law: a figure stands beside ours with the CPU that it was
taken on, and is never scaled to another one. How fast hashing and memory are differs from CPU to CPU in other ways.
"""

NAME = "Rust trie-db 0.32"
CPU = "AMD Zen 5 with AVX-512"

FIGURES: dict[str, dict[tuple[int, int], float]] = {
    "bulk root, ns/key": {
        (1_000, 32): 340, (10_000, 32): 337, (100_000, 32): 346, (1_000_000, 32): 465,
        (1_000, 100): 500, (1_000_000, 100): 735,
    },
    "get, ns": {
        (1_000, 32): 547, (10_000, 32): 726, (100_000, 32): 1_665, (1_000_000, 32): 2_641,
        (1_000, 100): 572, (1_000_000, 100): 3_031,
    },
    "prove k=100, us": {
        (1_000, 32): 90, (10_000, 32): 124, (100_000, 32): 172, (1_000_000, 32): 362,
        (1_000, 100): 106, (1_000_000, 100): 349,
    },
    "prove k=1000, us": {
        (1_000, 32): 844, (10_000, 32): 1_180, (100_000, 32): 2_320, (1_000_000, 32): 4_320,
        (1_000, 100): 1_030, (1_000_000, 100): 4_020,
    },
    "verify k=100, us": {
        (1_000, 32): 121, (10_000, 32): 195, (100_000, 32): 295, (1_000_000, 32): 431,
        (1_000, 100): 163, (1_000_000, 100): 476,
    },
    "verify k=1000, us": {
        (1_000, 32): 866, (10_000, 32): 1_360, (100_000, 32): 2_300, (1_000_000, 32): 4_450,
        (1_000, 100): 1_120, (1_000_000, 100): 5_170,
    },
    "compact encode k=1000, us": {
        (1_000, 32): 650, (10_000, 32): 1_700, (100_000, 32): 3_540, (1_000_000, 32): 6_070,
        (1_000, 100): 950, (1_000_000, 100): 8_110,
    },
    "compact decode k=1000, us": {
        (1_000, 32): 563, (10_000, 32): 1_310, (100_000, 32): 2_530, (1_000_000, 32): 4_450,
        (1_000, 100): 910, (1_000_000, 100): 5_260,
    },
    "update 1 %, ns/changed key": {
        (1_000, 32): 3_800, (10_000, 32): 3_800, (100_000, 32): 6_000, (1_000_000, 32): 9_100,
        (1_000, 100): 3_800, (1_000_000, 100): 8_500,
    },
}  # fmt: skip

FIGURES |= {f"verify k={k} from a set, us": FIGURES[f"verify k={k}, us"] for k in (100, 1_000)}
FIGURES |= {f"verify() of a set to a dict k={k}, us": FIGURES[f"verify k={k}, us"] for k in (100, 1_000)}
"""Whether our proof lies in arrays or is a set of Python objects: the peer's is a set."""


def figure(workload: str, keys: int, value_bytes: int) -> float | None:
    """Return what the peer took on its CPU; ``None`` where it was not measured."""
    return FIGURES.get(workload, {}).get((keys, value_bytes))
