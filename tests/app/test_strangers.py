"""Files from strangers, each with an attack that would show: a file named ``owned``, a page with markup, memory.

What is tried on Parquet stands in ``tests/spark/test_parquet_footer.py``, on checkpoints in
``tests/ledger/test_checkpoint.py``, on work folders in ``tests/spark/test_damaged_work.py``.
"""

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

from command_line import Command, Refused, Written
from relaycast.scenario import trace_file
from relaycast_trie import StateVersion, StorageProof, build_database

SCENARIO = """\
blocks = 4
publications = "feed.csv"
[[parachains]]
id = 2001
[[parachains]]
id = 3000
subscribe = [{ publisher = 2001 }]
"""


class Owned:
    """Leaves a file behind where somebody unpickles it."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("owned"),)


PICKLE = pickle.dumps(Owned())
YAML = "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [owned]]"
DEEP = 100_000
HUGE = "9" * 100_000


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("a.toml", PICKLE, "run a.toml"),
        ("a.json", PICKLE, "run a.json"),
        ("a.yaml", PICKLE, "run a.yaml"),
        ("a.yaml", YAML, "run a.yaml"),
        ("a.yaml", f"name: {YAML}", "run a.yaml"),
        ("a.yaml", "a: &a [x]\nb: [*a, *a]", "run a.yaml"),
        ("a.toml", f"a = {'[' * DEEP}", "run a.toml"),
        ("a.toml", f"blocks = {HUGE}", "run a.toml"),
        ("a.toml", "blocks = 1\nblocks = 2", "run a.toml"),
        ("a.json", "[" * DEEP, "run a.json"),
        ("a.json", f'{{"blocks": {HUGE}}}', "run a.json"),
        ("a.json", '{"blocks": 1, "blocks": 2}', "run a.json"),
        ("a.yaml", "[" * DEEP, "run a.yaml"),
        ("a.json", "[" * DEEP, "import chain-spec a.json"),
        ("a.json", PICKLE, "import chain-spec a.json"),
        ("a.json", '{"genesis": {"raw": {"top": {"0x01": "0x02", "0x01": "0x03"}}}}', "import chain-spec a.json"),
        ("a.json", f'[["0x01", {HUGE}]]', "import state a.json"),
        ("a.json", "PAR1 and then nothing", "import state a.json"),
        ("a.json", PICKLE, "proof show a.json"),
        ("a.json", '{"nodes": ' + "[" * DEEP, "proof show a.json"),
        ("a.scale", b"\xfe\xff\xff\xff" * 4, "proof show a.scale"),
        ("a.scale", b"\x03\xff\xff\xff\xff\xff", "proof show a.scale"),
        ("a.toml", PICKLE, "pov snapshot oracle --check --out a.toml"),
        ("a.toml", f"schema = {'[' * DEEP}", "pov snapshot oracle --check --out a.toml"),
        ("a.toml", f"scenarios = {'[' * DEEP}", "sweep a.toml"),
        ("a.toml", f'scenarios = ["oracle"]\nseeds = [{HUGE}]', "sweep a.toml"),
        ("a.toml", 'scenarios = ["../../../../etc/passwd"]', "sweep a.toml"),
        ("a.toml", 'extends = "/dev/zero.toml"', "run a.toml"),
    ],
)
def test_a_hostile_file_is_refused_in_one_line(
    name: str, content: str | bytes, command: str, file: Written, refused: Refused
) -> None:
    file(content, name)
    assert len(refused(*command.split())) < 500


@pytest.mark.parametrize(
    "rows",
    [
        b"1,2001,a\0b,0x01\n1,2001,a,0x" + b"0" * 10_000_001 + b"\n",
        b"1,2001," + b"k" * 10_000_000 + b",0x01\n",
        b"1,=2001,a,0x01\n",
        PICKLE,
    ],
)
def test_hostile_rows_are_refused_in_one_line(rows: bytes, file: Written, refused: Refused) -> None:
    file(b"block,para_id,key,value\n" + rows, "feed.csv")
    assert len(refused("run", file(SCENARIO, "a.toml"))) < 500


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_unpacks_beyond_a_bound_is_refused_while_it_is_read(
    suffix: str, file: Written, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 1 << 20)
    rows = b"block,para_id,key,value\n" + b"1,2001,a,0x0102\n" * 100_000 + b"none\n"
    file(gzip.compress(rows) if suffix else rows, f"feed.csv{suffix}")
    name = file(SCENARIO.replace("feed.csv", f"feed.csv{suffix}"), "a.toml")
    said = "more than 1,048,576 bytes when unpacked" if suffix else "1 columns, 'none', expected the 4 of the header"
    assert said in refused("run", name)


MARKUP = ["<script>document.title='owned'</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "=1+cmd|' /C'!A0"]


@pytest.mark.parametrize("text", MARKUP)
def test_names_and_keys_are_text_on_every_page(text: str, file: Written, relaycast: Command, tmp_path: Path) -> None:
    """Names of publishers and subscribers, and keys that a trace brings: formulas are cells like any other."""
    quoted = text.replace('"', '""')
    file(f'block,para_id,key,value\n1,2001,"{quoted}",0x01\n', "feed.csv")
    named = text.replace("\\", "\\\\").replace('"', '\\"')
    file(f'name = "{named}"\n{SCENARIO}'.replace("id = ", f'name = "{named}"\nid = '), "a.toml")
    assert relaycast("run", "a.toml").code == 0
    assert relaycast("compare", "a.toml", "--policy", "cache=none").code == 0
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) == 2
    for page in pages:
        written = page.read_text()
        assert "<script>document" not in written
        assert "<img" not in written
        assert "&lt;script&gt;document" in written or "script" not in text
        assert "{{ 7 * 7 }}" in written or "{{" not in text


@pytest.mark.slow
def test_long_partial_keys_below_each_other_are_refused_before_they_fill_the_memory(
    file: Written, refused: Refused
) -> None:
    """Three megabytes, in which the paths of all nodes would take more than one gigabyte."""
    key, keys = b"", []
    for _ in range(400):
        key += b"\x11" * 8_000
        keys.append(key + b"\x20")
        key += b"\x10"
    db, root = build_database(dict.fromkeys(keys, b"v" * 40), state_version=StateVersion.V0)
    proof = StorageProof.generate(db, root, keys[-1:])
    name = file({"nodes": [f"0x{node.hex()}" for node in proof]}, "proof.json")
    for command in ("proof show {}", "proof show {} --json", "proof show {} --html page.html"):
        assert "nodes whose paths have more than" in refused(*command.format(name).split())
