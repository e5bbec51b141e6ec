"""What all tests share: how long hypothesis looks for a counterexample, which worker runs what, and the plugins."""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

import long_hauls
import searches
from relaycast import pytest_plugin
from shared_vectors import Case, Selection

settings.register_profile(searches.QUICK, deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak", deadline=None, max_examples=1_000, database=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile(  # a counterexample is enough, it need not be small
    "mutants", settings.get_profile("ci"), database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

ONE_SPARK = "spark"
"""What the files share whose tests take the fixture of a Spark session."""

SECONDS_OF_A_TEST = 0.03
SECONDS_OF_A_FILE = {
    ONE_SPARK: 45,
    "app/test_digests.py": 17,
    "app/test_attack.py": 13,
    "app/test_command_line.py": 11,
    "docs/test_walkthrough.py": 11,
    "trie/test_kernels.py": 11,
    "docs/test_code_blocks.py": 10,
    "app/test_experiments.py": 9,
    "app/test_icrc_verb.py": 9,
    "app/test_predict.py": 9,
    "app/test_trie_engines.py": 8,
    "app/test_attack_churn.py": 7,
    "app/test_budget_search.py": 7,
    "app/test_pov_on_github.py": 7,
    "app/test_pytest_plugin.py": 7,
    "app/test_verdicts.py": 7,
    "app/test_wamp_served.py": 7,
    "spark/test_spine.py": 7,
    "app/test_attack_price.py": 9,
    "app/test_attack_squat.py": 6,
    "app/test_compare.py": 6,
    "app/test_out_files.py": 6,
    "app/test_report.py": 6,
    "app/test_serve.py": 6,
    "ledger/test_checkpoint.py": 6,
    "app/test_gallery.py": 5,
    "app/test_pov_gate.py": 5,
    "app/test_run.py": 5,
    "app/test_accounting.py": 4,
    "app/test_notebook.py": 4,
    "collator/test_network.py": 4,
    "test_architecture.py": 4,
    "app/test_comparison_page.py": 3,
    "app/test_predict_run.py": 3,
    "spark/test_trie_engines_on_spark.py": 3,
}
"""About how long files take whose tests are few and long; workers begin with what takes longest."""

SECONDS_OF_A_SLOW_FILE = {
    ONE_SPARK: 290,
    "app/test_experiments.py": 220,
    "spark/test_cluster.py": 145,
    "app/test_side_by_side.py": 120,
    "wasm/test_other_host.py": 115,
    "spark/test_two_writers.py": 110,
    "trie/test_kernels.py": 110,
    "app/test_digests.py": 110,
    "trie/test_other_cpus.py": 100,
    "pallets/test_subscriber_machine.py": 85,
    "app/test_serve_data.py": 80,
    "spark/test_kill.py": 75,
    "clients/test_papi.py": 70,
    "clients/test_papi_on_the_new_dialect.py": 65,
    "docs/test_code_blocks.py": 60,
    "pallets/test_deletion_machine.py": 55,
    "app/test_kept_points.py": 55,
    "app/test_serve_fuzz.py": 50,
    "gateway/icrc/test_simulation.py": 50,
    "gateway/cloudevents/test_interface_fuzz.py": 40,
    "node/test_forks_model.py": 40,
    "app/test_wheel.py": 37,
    "wasm/test_hostile_arguments.py": 35,
    "wamp_clients/test_clients.py": 34,
    "spark/test_early_kill.py": 30,
    "app/test_trie_engines.py": 25,
    "clients/test_polkadot_js.py": 21,
    "clients/test_real_runtimes.py": 19,
    "clients/test_substrate_interface.py": 19,
    "clients/test_guide.py": 17,
    "pallets/test_oversize_nodes.py": 17,
    "clients/test_async_substrate_interface.py": 16,
    "gateway/candid/test_fuzz.py": 10,
}
"""The same of the slow suite, where a file that comes last keeps one worker busy alone for minutes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the journal of long hauls."""
    parser.addoption(long_hauls.OPTION, metavar="FILE", help="leave out rounds that FILE says passed, and note others")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins; relaycast's is there already unless the environment was made before it had one."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell ignores it for what runs behind ``&``
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.pluginmanager.has_plugin("relaycast"):
        config.pluginmanager.register(pytest_plugin, "relaycast")
    journal = config.getoption(long_hauls.OPTION)
    if journal is not None:
        config.pluginmanager.register(long_hauls.Journal(Path(journal), long_hauls.digest_of_sources()), "long hauls")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect garbage neither while ten thousand tests are collected nor among them later: they stay until the end.

    Later look for it as rarely as a server does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a worker put what takes longest first, so that no worker ends long after the others."""
    if not hasattr(config, "workerinput"):
        return
    places = [_place_of(item.path) for item in items]
    tests = Counter(places)
    folder = Path(__file__).parent
    chosen = config.option.markexpr
    known = SECONDS_OF_A_FILE if "slow" not in chosen or "not slow" in chosen else SECONDS_OF_A_SLOW_FILE

    def seconds(place: str) -> float:
        name = place if place == ONE_SPARK else Path(place).relative_to(folder).as_posix()
        return known.get(name, SECONDS_OF_A_TEST * tests[place])

    order = sorted(range(len(items)), key=lambda at: (-seconds(places[at]), places[at]))
    items[:] = [items[at] for at in order]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a file's tests together on one worker, where its fixtures are made once, and those on Spark, too.

    xdist's own groups do not serve: it writes them into ids of tests that pytest 9.2 does not read.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - not there where plugins are not loaded

    config.option.loadscopereorder = False  # by the number of tests: the order of the items is better
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: _place_of(config.rootpath / nodeid.partition("::")[0])
    return scheduler


@cache
def _place_of(file: Path) -> str:
    """Return what the tests of a file share with those that their worker runs, too: it, or what takes long to make."""
    text = file.read_text()
    if 'spark: "SparkSession"' in text or 'usefixtures("spark")' in text:
        return ONE_SPARK
    return str(file)


@pytest.fixture(autouse=True)
def plain_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walk publishers plainly where ``auto`` would choose: what it takes depends on what ran before in a process."""
    array_walk = sys.modules.get("relaycast_pallets.subscriber.array_walk")
    if array_walk is not None:
        monkeypatch.setattr(array_walk, "pays_in_arrays", lambda *_: False)


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> list[Case]:
    """Return the cases of a vector file, see ``shared_vectors.over``."""
    selection = request.param
    assert isinstance(selection, Selection)
    found = selection.cases()
    assert found, f"no cases in {selection}"
    return found


@pytest.fixture(scope="session")
def conformance_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an exported suite; tests that change it take a copy."""
    from relaycast.cli.vectors import exported  # noqa: PLC0415 - few tests need it

    folder = tmp_path_factory.mktemp("exported") / "suite"
    exported(folder)
    return folder
