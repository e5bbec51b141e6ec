"""The pytest plugin as another project meets it: fixtures, marker, kept sizes, and no cost where it is not used."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import relaycast as rc
from relaycast.pov.snapshot import read_snapshot
from relaycast.pytest_fixtures import seed_of
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_xcm import ParaId

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "pytest-example"

IS_INSTALLED = bool(entry_points(group="pytest11", name="relaycast"))
"""Whether this environment was made since there is a plugin; otherwise it is named on the command line."""

Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pytest:
    """Run pytest in a folder of its own, with the files that are given, as a person does.

    Plugins of other libraries take longer to load than such a test to run: they are there for ``all_plugins`` alone,
    and only then does pytest find ours by itself.
    """
    monkeypatch.delenv("CI", raising=False)

    def run(
        *arguments: str, code: int = 0, all_plugins: bool = False, **files: str
    ) -> subprocess.CompletedProcess[str]:
        for name, content in files.items():
            (tmp_path / f"{name}.py").write_text(content)
        plugin = [] if all_plugins and IS_INSTALLED else ["-p", "relaycast.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *plugin, *arguments]
        environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        if not all_plugins:
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended

    return run


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """Copy the example project of the documentation."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return tmp_path


def test_the_example_is_what_the_page_shows_and_no_longer_than_twenty_lines() -> None:
    code = (EXAMPLE / "test_feeds.py").read_text()
    page = (ROOT / "docs" / "guides" / "pytest.md").read_text()
    assert re.findall(r"^```python title=\"test_feeds.py\"\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) == [code]
    assert len(code.splitlines()) <= 20
    assert {entry.name for entry in EXAMPLE.iterdir() if not entry.name.startswith(("__", "."))} == {
        "pyproject.toml",
        "test_feeds.py",
        "pov.pytest.toml",
    }


@pytest.mark.slow
def test_the_example_project_passes_fails_on_growth_and_keeps_what_is_meant(project: Pytest, example: Path) -> None:
    kept = (example / "pov.pytest.toml").read_bytes()
    assert "2 passed" in project().stdout
    assert (example / "pov.pytest.toml").read_bytes() == kept

    feeds = example / "test_feeds.py"
    feeds.write_text(feeds.read_text().replace("* 16", "* 30"))
    said = project(code=1).stdout
    page = (ROOT / "docs" / "guides" / "pytest.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert shown in said
    assert "net = relaycast.Network(seed=7, ...)" in said
    assert (example / "pov.pytest.toml").read_bytes() == kept

    name = "test_feeds.py::test_fifty_feeds_stay_as_cheap_as_they_are"
    assert f"pov.pytest.toml: kept {name}" in project("--pov-update").stdout
    assert read_snapshot(example / "pov.pytest.toml").scenarios[name].subscribers[3000].publishers[2000].value == 1_950
    assert "relaycast ====" not in project().stdout

    feeds.write_text(feeds.read_text().replace("* 30", "* 16"))
    said = project().stdout
    assert f"shrank: {name}, subscriber 3000" in said
    assert "2 passed" in said


NETWORKS = """
import pytest
from relaycast.choices import NoCache
from relaycast.pytest_fixtures import seed_of

pytestmark = pytest.mark.relaycast(policies={"cache": "none"}, seed=5)

def reader(net):
    net.subscriber(3000, keys=[net.publisher(2000).feed("a")])
    return net.chains.parachains[3000].subscriber

class TestClosest:
    @pytest.mark.relaycast(seed=9)
    def test_what_stands_closer_counts(self, net):
        assert net.seed == 9
        assert reader(net).policies.cache == NoCache()

@pytest.mark.relaycast(budget="floor:4096", broadcaster="rococo")
def test_everything_may_be_named(net):
    assert net.seed == 5
    assert net.chains.relay_chain.broadcaster.config.name == "rococo"
    reader(net)
    assert net.chains.parachains[3000].parachain_system.budget.minimum_bytes == 4096
"""

SEEDS = """
import pytest
from relaycast.pytest_fixtures import seed_of

@pytest.mark.parametrize("kind", ["a/b", "c"])
def test_a_seed_follows_from_the_name(net, kind):
    assert net.seed == seed_of(f"test_seeds.py::test_a_seed_follows_from_the_name[{kind}]")

def test_every_test_has_a_network_of_its_own(net):
    assert net.chains.tick == 0 and net.ledger.accounts.value == "by publisher"
    net.run(blocks=1)

def test_and_the_next_one_too(net):
    assert net.chains.tick == 0
"""


def test_networks_are_made_of_what_markers_say(project: Pytest) -> None:
    ended = project("--strict-markers", "-q", all_plugins=True, test_networks=NETWORKS, test_seeds=SEEDS)
    assert "6 passed" in ended.stdout


def test_a_seed_can_be_given_to_all_that_have_none(project: Pytest) -> None:
    code = "def test_it(net):\n    assert net.seed == 44\n"
    assert "1 passed" in project("-q", "--relaycast-seed", "44", test_it=code).stdout


MARKERS = [
    ("seeed=1", "relaycast has no argument 'seeed' (did you mean seed?)"),
    ("7", "relaycast takes arguments by name, got 7"),
    ("seed=-1", "a seed is a number from 0 to 2"),
    ("seed='x'", "a seed is a whole number, got 'x' of type str"),
    (
        "policies={'cache': 'nnoe'}",
        "policies.cache: got 'nnoe', expected the name of a policy for cache",
    ),
    ("policies={'cash': 'none'}", "'cash' is no kind of policy (did you mean cache?)"),
    ("budget='flor'", "policies.budget: got 'flor', expected the name of a policy for budget (did you mean floor?)"),
    ("broadcaster='rococco'", "'rococco' names no limits of a relay chain (did you mean rococo?)"),
    ("genesis='nowhere.json'", "nowhere.json: got no such file or directory"),
]


def test_a_marker_that_cannot_be_meant_says_why(project: Pytest) -> None:
    tests = [
        f"@pytest.mark.relaycast({arguments})\ndef test_{number}(net): pass\n"
        for number, (arguments, _) in enumerate(MARKERS)
    ]
    said = project("-q", code=1, test_markers="import pytest\n" + "\n".join(tests)).stdout
    assert f"{len(MARKERS)} errors" in said
    for number, (_, line) in enumerate(MARKERS):
        assert f"test_markers.py::test_{number}: {line}" in said


SIZES = """
import pytest

def run(net, size=16):
    net.subscriber(3000, keys=[net.publisher(2000).publish("a", bytes(size))])
    return net.run(blocks=4)

def test_two_runs_are_told_apart(net, pov_snapshot):
    pov_snapshot(run(net))
    pov_snapshot(net.run(blocks=2), name="later")

def test_the_same_run_twice_is_a_slip(net, pov_snapshot):
    first = run(net)
    pov_snapshot(first)
    with pytest.raises(ValueError, match="was compared already: name the runs"):
        pov_snapshot(first)

def test_what_is_no_run_or_no_tolerance_is_a_slip(net, pov_snapshot):
    with pytest.raises(TypeError, match="is given what net.run"):
        pov_snapshot(net)
    with pytest.raises(ValueError, match="a percentage from 0% to 1000%"):
        pov_snapshot(run(net), tolerance="much")
"""


@pytest.mark.slow
def test_sizes_are_kept_by_test_and_by_name(project: Pytest, tmp_path: Path) -> None:
    said = project("-q", code=1, test_sizes=SIZES).stdout
    entry = "test_sizes.py::test_two_runs_are_told_apart"
    assert f"cannot be compared: {entry}: not in the kept snapshot" in said
    assert not (tmp_path / "pov.pytest.toml").exists()
    project("-q", "--pov-update", "-o", "pov_snapshot_file=sizes.toml")
    kept = read_snapshot(tmp_path / "sizes.toml").scenarios
    twice = "test_sizes.py::test_the_same_run_twice_is_a_slip"
    assert list(kept) == [twice, entry, f"{entry} later"]
    assert (kept[entry].seed, kept[entry].blocks) == (seed_of(entry), 4)
    assert "3 passed" in project("-q", "-o", "pov_snapshot_file=sizes.toml").stdout
    (tmp_path / "sizes.toml").write_text("schema = 7\n")
    assert (
        "sizes.toml at schema: got 7, expected 1" in project("-q", "-o", "pov_snapshot_file=sizes.toml", code=1).stdout
    )


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import relaycast.pytest_plugin\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new), sorted(name for name in sys.modules if name.startswith('relaycast')))"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert (
        ended.stdout
        == "['relaycast'] ['relaycast', 'relaycast.notebook', 'relaycast.pytest_plugin', 'relaycast.version']\n"
    )


def test_this_suite_has_the_plugin_once(request: pytest.FixtureRequest) -> None:
    manager = request.config.pluginmanager
    ours = [plugin for plugin in manager.get_plugins() if getattr(plugin, "__name__", "") == "relaycast.pytest_plugin"]
    assert [manager.get_name(plugin) for plugin in ours] == ["relaycast"]


@pytest.mark.relaycast(seed=11, policies={"cache": "none"})
def test_the_fixtures_serve_this_suite_too(net: rc.Network, pov_snapshot: rc.PovSnapshot) -> None:
    feeds = net.publisher(2000).publish_many({f"key/{index}": bytes([index]) * 40 for index in range(30)})
    net.subscriber(3000, keys=feeds[:12])
    assert net.chains.parachains[ParaId(3000)].subscriber.policies.cache == NoCache()
    assert repr(pov_snapshot) == (
        "<PovSnapshot of test_pytest_plugin.py::test_the_fixtures_serve_this_suite_too in pov.pytest.toml>"
    )
    pov_snapshot(net.run(blocks=8))


KEPT = """
def test_a(net, pov_snapshot):
    net.subscriber(3000, keys=[net.publisher(2000).publish("a", bytes(16))])
    pov_snapshot(net.run(blocks=4))
"""


@pytest.mark.slow
def test_entries_that_no_test_uses_are_named_and_removed_on_update(project: Pytest, tmp_path: Path) -> None:
    both = KEPT + KEPT.replace("test_a", "test_b")
    project("-q", "--pov-update", test_kept=both)
    kept = tmp_path / "pov.pytest.toml"
    said = project("-q", "-k", "test_a").stdout
    assert "no test compares" not in said, "test_b was left out by the command line, not by the project"
    said = project("-q", test_kept=KEPT).stdout
    assert "pov.pytest.toml: no test compares test_kept.py::test_b (--pov-update removes it)" in said
    assert len(read_snapshot(kept).scenarios) == 2
    project("-q", "--pov-update")
    assert list(read_snapshot(kept).scenarios) == ["test_kept.py::test_a"]


def test_continuous_integration_keeps_no_new_sizes(
    project: Pytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    said = project("-q", "--pov-update", code=1, test_kept=KEPT).stdout
    assert "--pov-update: got CI in the environment, expected sizes to be kept by a person" in said
    assert not (tmp_path / "pov.pytest.toml").exists()


@pytest.mark.slow
def test_sizes_are_kept_by_several_workers_too(project: Pytest, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    tests = "".join(KEPT.replace("test_a", f"test_{name}") for name in "abcd")
    said = project("-q", "-n", "2", "--pov-update", all_plugins=True, test_kept=tests).stdout
    assert said.count("pov.pytest.toml: kept test_kept.py::test_") == 4
    assert len(read_snapshot(tmp_path / "pov.pytest.toml").scenarios) == 4
    assert (
        "no test compares test_kept.py::test_d"
        in project("-q", "-n", "2", all_plugins=True, test_kept=tests.partition("def test_d")[0]).stdout
    )


def test_paths_in_a_marker_start_at_the_file_of_the_test(project: Pytest, tmp_path: Path) -> None:
    code = """
import pytest
@pytest.mark.relaycast(genesis="state.json")
def test_it(net):
    assert net.genesis_entries > 1
"""
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "state.json").write_text('[["0x01", "0x02"], ["0x03", "0x04"]]')
    (tmp_path / "inside" / "test_inside.py").write_text(code)
    assert "1 passed" in project("-q").stdout


def test_readers_that_starve_fail_a_test(project: Pytest) -> None:
    code = """
def starving(net):
    feeds = net.publisher(2000).publish_many({f"key/{i}": bytes(16) for i in range(40)})
    net.subscriber(3000, keys=feeds, budget="remaining:1KiB")
    return net.run(blocks=16)

def test_it(net, pov_snapshot):
    pov_snapshot(starving(net))

def test_a_study(net, pov_snapshot):
    pov_snapshot(starving(net), allow_starved=True)
"""
    said = project("-q", "--pov-update", code=1, test_starving=code).stdout
    assert "starved: 3000 had something to receive in " in said
    assert "1 failed, 1 passed" in said


def test_blocks_that_do_not_fit_fail_a_test_by_cause(project: Pytest) -> None:
    code = """
def crowded(net):
    feeds = net.publisher(2000).publish_many({f"key/{i}": bytes([i]) * 40 for i in range(150)})
    net.subscriber(3000, keys=feeds, max_pov_bytes=9_000)
    return net.run(blocks=6)

def test_it(net, pov_snapshot):
    pov_snapshot(crowded(net))

def test_a_study(net, pov_snapshot):
    pov_snapshot(crowded(net), allow_oversize=True)
"""
    said = project("-q", "--pov-update", code=1, test_crowded=code).stdout
    assert "blocks do not fit into a PoV: relay block" in said
    assert "of 9,000 bytes compressed" in said
    assert "1 failed, 1 passed" in said
