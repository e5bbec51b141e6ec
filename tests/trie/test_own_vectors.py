"""The project's own selection of vectors: a true part of the shared set, and wide enough to test a clone by itself."""

import json

import pytest

from shared_vectors import OWN, SHARED, Case, cases_in, shared, unhex

FILES = sorted(
    str(path.relative_to(OWN)) for folder in ("trie_db", "smoldot") for path in (OWN / folder).glob("*.json")
)
BYTES = 600_000
"""A clone stays small: the selection keeps one of each kind."""


@pytest.mark.parametrize("file", FILES)
def test_each_case_is_a_case_of_the_shared_file(file: str) -> None:
    known = {written(case) for case in cases_in(shared(f"vectors/{file}"))}
    nested = {written(part) for case in cases_in(shared(f"vectors/{file}")) for part in case.get("cases", ())}
    for case in cases_in(OWN / file):
        parts = case.get("cases")
        if parts is None:
            assert written(case) in known
        else:
            assert {written(part) for part in parts} <= nested


def test_the_selection_is_small_and_covers_every_shared_trie_file() -> None:
    assert sum((OWN / file).stat().st_size for file in FILES) < BYTES
    if SHARED.exists():
        of_tries = [path for folder in ("trie_db", "smoldot") for path in SHARED.glob(f"vectors/{folder}/*.json")]
        assert sorted(str(path.relative_to(SHARED / "vectors")) for path in of_tries) == FILES


def test_every_boundary_of_a_header_is_in_the_selection() -> None:
    decoded = [case for case in cases_in(OWN / "trie_db/node_decode.json") if case["ok"]]
    kinds = {
        (case["kind"], next(iter(case["value"] or {"none": ""}), None)) for case in decoded if case["kind"] != "empty"
    }
    assert {("leaf", "inline"), ("leaf", "hash"), ("branch", "inline"), ("branch", "hash"), ("branch", "none")} <= kinds
    first_bytes = {unhex(entry["node"])[0] for entry in real_nodes()}
    assert {0x00, 0x7E, 0x7F, 0x3E, 0x3F, 0xBF, 0xFE, 0x1E, 0x1F} <= first_bytes


def real_nodes() -> list[Case]:
    sets = cases_in(OWN / "trie_db/nodes.json")
    return [entry for vector in sets for version in ("v0", "v1") for entry in vector[version]["preorder"]]


def written(case: Case) -> str:
    return json.dumps(case, sort_keys=True)
