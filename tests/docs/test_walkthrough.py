"""The chapters run, and each exercise tells a right answer from wrong ones without giving it away.

The site and the pictures show what a run of the chapters shows; they are made here, from the same run.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from relaycast.cli.verbs import VERBS
from rooms import ROOT

WALKTHROUGH = ROOT / "docs" / "walkthrough"
CHAPTERS = sorted(file.stem for file in WALKTHROUGH.glob("chapter_*.py"))

CHILD = b":child_storage:default:"

SOLUTIONS: dict[str, tuple[object, list[object]]] = {
    "chapter_10_specification": (1101, [1100, 1099, 1102, 1000, 100, "1101", None, True]),
    "chapter_1_hex_tries": (
        "42 77 0c 6d 6f 6f",
        [
            "43 0f 77 0c 6d 6f 6f",  # the nibble that chose the child repeated
            "42 77 03 6d 6f 6f",  # the length as it is, not times four
            "02 77 0c 6d 6f 6f",  # a header that no node has
            "42 77 0c 6d 6f 6f 00",  # something after the end
            "c2 77 00 00 0c 6d 6f 6f",  # a branch
            "42 77 08 6d 6f 6f",  # a value cut short
            "not hexadecimal",
        ],
    ),
    "chapter_2_v1_values": (23, [32, 24, 22, 0, -1, "23", True]),
    "chapter_3_proofs": (
        {3, 5, 7, 8},
        [
            {3, 5, 8},  # without the value, which stands outside of its leaf
            {1, 2, 3, 4, 5, 6, 7, 8},  # everything
            {3, 5, 7},  # without the root
            {3, 7, 8},  # without the branch between
            {9},
            [3, 5, 7, 8],
        ],
    ),
    "chapter_4_child_tries": (
        CHILD + b"pubsub\xd1\x07\x00\x00",
        [
            CHILD + b"pubsub\x00\x00\x07\xd1",  # the highest byte first
            b"pubsub\xd1\x07\x00\x00",  # a child trie's name without what all have in front
            CHILD + b"\xd1\x07\x00\x00",
            CHILD + b"pubsub2001",
            CHILD + b"pubsub\xd1\x07",
            "text",
        ],
    ),
    "chapter_5_subscribing": (
        {"stale": "RootMismatch", "forge": "UnusedNodes", "stutter": "DuplicateNode"},
        [
            {"stale": "RootMismatch", "forge": "IncompleteBelowLimit", "stutter": "DuplicateNode"},
            {"stale": "MissingNode", "forge": "MissingNode", "stutter": "UnusedNodes"},
            {"stale": "RootMismatch"},
            {"stale": "Lie", "forge": "UnusedNodes", "stutter": "DuplicateNode"},
        ],
    ),
    "chapter_6_budgets": (906, [839, 440, 5_000, 907, 905, 0, "906"]),
    "chapter_7_events": (
        {
            "all": [
                {"suffix": {"type": ".published"}},
                {"prefix": {"subject": "price/"}},
                {"exact": {"ttlstate": "valid_for"}},
            ]
        },
        [
            {"prefix": {"subject": "price/"}},  # callbacks, and prices that stay
            {"all": [{"suffix": {"type": ".published"}}, {"prefix": {"subject": "price/"}}]},  # prices that stay
            {"all": [{"suffix": {"type": ".published"}}, {"exact": {"subject": "price/ksm"}}]},  # no price to come
            {"all": [{"suffix": {"type": ".published"}}, {"exact": {"ttlstate": "valid_for"}}]},  # the weather, too
            {"exact": {"subject": "price/dot"}},
            {"exact": {"ttlstate": "valid_for", "subject": "price/ksm"}},  # two attributes in one dialect
            {"like": {"subject": "price/%"}},  # no dialect
            "price/ksm",
        ],
    ),
    "chapter_8_own_runtime": (
        (95, 2),
        [
            (161, 4),  # nothing rolled back
            (101, 3),  # the last one, too
            (45, 1),  # the block ends at the first that is not valid
            (95, 4),  # the count rolled back, the list not
            (5, 0),
            (95, True),
            95,
            None,
        ],
    ),
    "chapter_9_node": (55, [50, 5, 12, 45, 0, "55", None, True]),
}


@pytest.fixture(autouse=True)
def chapters_find_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a chapter import what lies beside it, as it can where it is opened."""
    monkeypatch.syspath_prepend(str(WALKTHROUGH))


def defined(chapter: str) -> Mapping[str, Any]:
    """Run a chapter as it is and return what its cells define."""
    definitions: Mapping[str, Any] = import_module("runs_of_chapters").run_of(chapter)[1]
    return definitions


@pytest.mark.parametrize("copy", ["my-walkthrough", "docs/walkthrough", "mine/of/march"])
def test_a_copy_of_the_chapters_finds_the_examples(copy: str, tmp_path: Path) -> None:
    (tmp_path / copy).mkdir(parents=True)
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    (tmp_path / "docs" / "examples" / "counter.wat").touch()
    copied = tmp_path / copy / "lesson.py"
    copied.write_bytes((WALKTHROUGH / "lesson.py").read_bytes())
    lesson = run_path(str(copied))
    assert lesson["example"]("counter.wat") == tmp_path / "docs" / "examples" / "counter.wat"
    with pytest.raises(FileNotFoundError, match="missing"):
        lesson["example"]("missing.wat")


def test_every_chapter_has_an_exercise_with_a_solution() -> None:
    assert list(SOLUTIONS) == CHAPTERS
    assert len(CHAPTERS) == 10


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_runs_of_chapters_and_its_placeholder_is_no_answer(chapter: str) -> None:
    verdict = defined(chapter)["verdict"]
    assert not verdict.right
    assert len(verdict.said) > 20


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_solution_is_right(chapter: str) -> None:
    verdict = defined(chapter)["check"](SOLUTIONS[chapter][0])
    assert verdict.right, verdict.said


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_solution_that_a_reader_can_open_is_right(chapter: str) -> None:
    found = defined(chapter)
    assert found["aid"].solution == SOLUTIONS[chapter][0]
    for number in ("", "_2"):
        if f"check{number}" in found:
            assert found[f"check{number}"](found[f"aid{number}"].solution).right
            assert repr(found[f"aid{number}"].solution) not in found[f"aid{number}"].hint


@pytest.mark.parametrize(
    "chapter", [pytest.param(it, marks=[] if it == "chapter_2_v1_values" else pytest.mark.slow) for it in CHAPTERS]
)
def test_the_solution_is_right_in_the_place_of_the_placeholder(chapter: str) -> None:
    verdict = import_module(chapter).app.run(defs={"answer": SOLUTIONS[chapter][0]})[1]["verdict"]
    assert verdict.right, verdict.said


@pytest.mark.parametrize(
    ("chapter", "answer"), [(chapter, wrong) for chapter, (_, answers) in SOLUTIONS.items() for wrong in answers]
)
def test_a_wrong_answer_is_told_what_is_wrong_with_it_and_not_the_solution(chapter: str, answer: object) -> None:
    verdict = defined(chapter)["check"](answer)
    assert not verdict.right
    assert len(verdict.said) > 20
    solution = SOLUTIONS[chapter][0]
    if isinstance(solution, int | str):
        assert answer == str(solution) or not re.search(rf"\b{solution}\b", verdict.said)


def test_the_tries_made_by_hand_are_those_of_the_engine() -> None:
    definitions = defined("chapter_1_hex_tries")
    assert definitions["by_hand"] == definitions["by_relaycast"]


@pytest.mark.parametrize(("budget_bytes", "served"), [(1_250, 10), (1_251, 12)])
def test_two_keys_for_which_a_byte_is_missing_are_passed_over_as_chapter_6_says(budget_bytes: int, served: int) -> None:
    net, feeds = defined("chapter_6_budgets")["tight_network"](budget_bytes, values=12, value_bytes=300)
    late: list[Any] = []
    for block in range(1, 41):
        net.publisher(2000).publish_many({feed.name: bytes([index, block]) * 150 for index, feed in enumerate(feeds)})
        late += [delivery for record in net.ledger.step() for delivery in record.deliveries if block > 20]
    assert len({delivery.key for delivery in late}) == served


@pytest.mark.parametrize("wrong", [(24, 12), (37, 0), (25, 12), (24, 37), 24, None, ("24", "13"), (True, False)])
def test_who_comes_back_in_chapter_7_gets_what_is_kept_and_is_told_what_a_wrong_count_misses(wrong: object) -> None:
    check = defined("chapter_7_events")["check_2"]
    assert check((24, 13)).right
    assert not check(wrong).right
    assert not re.search(r"\b(24|13)\b", check(wrong).said)


def test_a_made_up_value_is_not_believed_in_chapter_7() -> None:
    definitions = defined("chapter_7_events")
    assert definitions["outcome"] == "MissingNode: not believed"
    assert definitions["chosen"]["attributes"] == definitions["chosen"]["topic"] != definitions["chosen"]["data"]


@pytest.mark.parametrize("wrong", [749, 102, 1_279, 67, 48, 531, 0, "115", None, True])
def test_a_request_in_chapter_8_costs_the_nodes_that_nobody_else_needs(wrong: object) -> None:
    check = defined("chapter_8_own_runtime")["check_2"]
    assert check(115).right
    assert not check(wrong).right
    assert not re.search(r"\b115\b", check(wrong).said)


def test_only_with_all_nodes_of_its_proof_a_block_of_chapter_8_can_be_checked() -> None:
    found = [verdict for _, verdict in defined("chapter_8_own_runtime")["checks"]]
    assert found[0] == "the same header"
    assert sorted(found[1:]) == ["MissingNode", "MissingNode", "RootMismatch"]


BESIDE_PACKAGES = {"relaycast_gateway.gateway": {"Gateway"}, "relaycast.genesis.chain_spec": {"ChainSpec"}}
"""Names that are public although their modules are not."""


def is_public(module: str, tree: ast.Module) -> bool:
    """Return whether all that ``tree`` imports from a module inside of a package is on its public list."""
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for name in node.names
    }
    if module in BESIDE_PACKAGES:
        return imported <= BESIDE_PACKAGES[module]
    return imported <= set(getattr(import_module(module), "__all__", ()))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_uses_public_names_only(chapter: str) -> None:
    tree = ast.parse((WALKTHROUGH / f"{chapter}.py").read_text())
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in modules if name.startswith("relaycast") and "." in name and not is_public(name, tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr == "__name__" or not node.attr.startswith("_"), f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package = {"rt": "trie", "rx": "xcm", "rp": "pallets", "rn": "collator", "rg": "gateway", "rw": "wasm"}.get(
                node.value.id
            )
            if package:
                assert node.attr in import_module(f"relaycast_{package}").__all__, f"line {node.lineno}"


SHORT = """
INHERIT: {root}/mkdocs.yml
docs_dir: {root}/docs
hooks: ["{root}/docs/walkthrough/site_pages.py", "{root}/docs/reference/help_pages.py"]
plugins: []
validation: {{links: {{anchors: ignore}}}}
"""
"""The settings of a build without the reference, whose names are anchors, and without the index for searching."""


@pytest.fixture(scope="module")
def short_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in this process, where the chapters have been run; a warning fails it."""
    folder = tmp_path_factory.mktemp("site")
    settings = tmp_path_factory.mktemp("settings") / "mkdocs.yml"
    settings.write_text(SHORT.format(root=ROOT))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that mkdocs loads
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build(load_config(str(settings), strict=True, site_dir=str(folder)))
    return folder


def test_the_page_of_commands_has_every_verb(short_site: Path) -> None:
    ids = set(re.findall(r' id="([^"]+)"', (short_site / "reference" / "commands.html").read_text()))
    assert set(VERBS) <= ids
    assert "proof-make" in ids


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_shown_with_its_pictures_and_verdict(chapter: str, short_site: Path) -> None:
    page = (short_site / "walkthrough" / f"{chapter}.html").read_text()
    assert page.count("<svg") > 1
    assert "Not yet." in page


def test_the_pictures_are_those_that_are_drawn_now(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "docs" / "pictures"
    monkeypatch.syspath_prepend(str(folder))
    drawn = dict(import_module("draw").pictures())
    kept = {file.stem: file.read_text() for file in folder.glob("*.svg")}
    assert {name: f"{svg}\n" for name, svg in drawn.items()} == kept
