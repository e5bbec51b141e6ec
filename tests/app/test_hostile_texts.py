"""Names from strangers: none of them moves a cursor, sets a title, or ends a command with a traceback."""

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.text import Text

from command_line import Command, Refused, Written
from relaycast.genesis.state_export import read_state
from relaycast.refusal import BadInput, plain
from relaycast.serve.network import living
from relaycast.terminal import console, print_table
from witness_scenes import fetched

TITLE = "\x1b]0;owned\x07"
"""What gives a terminal another title."""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", 'extends = "oracle"\nname = "a\\u001b]0;owned\\u0007"', "at name: got the character '\\x1b' in"),
        ("a.toml", 'extends = "oracle"\nname = "a\\u202eb"', "at name: got the character '\\u202e' in"),
        ("a.toml", 'extends = "oracle"\n"\\u0000" = 1', "a.toml: got the character '\\x00' in '\\x00'"),
        ("a.toml", 'extends = "a\\u0000b"', "at extends: got the character '\\x00' in 'a\\x00b'"),
        ("a.toml", 'extends = "oracle"\npublications = "a\\u0000b.csv"', "at publications: got the character"),
        ("a.json", '{"extends": "oracle", "name": "a\\ud800b"}', "at name: got the character '\\ud800' in"),
        ("a.json", '{"extends": "oracle", "a\\udfff": 1}', "a.json: got the character '\\udfff' in"),
        ("a.yaml", 'extends: oracle\nparachains: [{id: 2000, name: "\\e[2J"}]', "at parachains[0].name: got the char"),
    ],
)
def test_a_text_that_does_not_print_is_refused(
    refused: Refused, file: Written, name: str, text: str, said: str
) -> None:
    line = refused("run", file(text, name))
    assert said in line
    assert line.endswith("expected text that prints")
    assert line.isprintable()


def test_a_description_may_have_lines(relaycast: Command, file: Written) -> None:
    assert not relaycast("run", file('extends = "oracle"\nblocks = 2\ndescription = "one\\n\\ttwo"', "a.toml")).code


LONG = f"a{TITLE}b\u202e{'c' * 5_000}"
SHORT = r"a\x1b]0;owned\x07b\u202e"
SPEC = {"name": LONG, "genesis": {"raw": {"top": {"0x01": "0x02"}}}}


def told(printed: str) -> str:
    """Return what was printed of ``LONG``, which cannot give orders and is not long."""
    assert all(line.isprintable() for line in printed.splitlines())
    name = printed[printed.index(SHORT) :].splitlines()[0]
    assert name.count("c") < 60
    return name


def test_the_name_of_a_chain_spec_is_shown_as_text_and_shortened(relaycast: Command, file: Written) -> None:
    spec = file(json.dumps(SPEC), "spec.json")
    assert told(relaycast("import", "chain-spec", spec).out).endswith("ccc...")
    assert told(relaycast("import", "chain-spec", spec, "--json").json["name"]).endswith("ccc...")
    run = relaycast("run", "oracle", "--genesis", spec, "--blocks", "2")
    told(run.out)
    (page,) = Path("out").glob("*/report.html")
    told(next(line for line in page.read_text("utf-8").splitlines() if SHORT in line).split(SHORT)[1][:100] + SHORT)


def test_the_chain_of_a_witness_is_shown_as_text_and_shortened(tmp_path: Path) -> None:
    live = living("oracle", "manual").clock
    live.new_block(4)
    found = fetched(live, lie=lambda asked, answer: LONG if asked == "system_chain" else answer)
    assert told(found.origin.name).endswith("ccc... at block 4")
    content = json.loads(gzip.decompress(found.encode()))
    told(content["chain"])
    (tmp_path / "w.json").write_text(json.dumps({**content, "chain": LONG}))
    assert told(read_state(str(tmp_path / "w.json")).name).endswith("ccc... at block 4 (a witness, on plain tries)")


@contextmanager
def answering(status: int, content: object) -> Iterator[str]:
    """Answer every request with ``content`` in JSON; yield the address."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "content",
    [
        {"detail": LONG},
        {"detail": "", "member": LONG, "got": "", "expected": ""},
        {"detail": 1, "member": "a", "got": LONG},
    ],
)
@pytest.mark.parametrize("words", [("subscribe", "list"), ("icrc", "call", "icrc72_get_publications", "(record {})")])
def test_the_problem_that_a_server_states_is_shown_as_text_and_shortened(
    refused: Refused, words: tuple[str, ...], content: dict[str, object]
) -> None:
    with answering(422, {"type": "a", **content}) as url:
        line = refused(*words, "--url", url)
    assert line.isprintable()
    assert len(line) < 1_000


@pytest.mark.parametrize("content", [{"id": LONG}])
def test_the_id_of_a_subscription_is_shown_as_text(relaycast: Command, content: object) -> None:
    with answering(201, content) as url:
        told(relaycast("subscribe", "add", "http://localhost/", "--url", url).out)


@pytest.mark.parametrize("content", [[1], {"id": 1}, [{"id": LONG}], 1, "text", {}])
@pytest.mark.parametrize(
    "words", ["list", "add http://localhost/", "remove one", "deadletters one", "deadletters one --redeliver"]
)
def test_a_server_that_answers_something_else_is_one_line(refused: Refused, words: str, content: object) -> None:
    with answering(200, content) as url:
        line = refused("subscribe", *words.split(), "--url", url)
    assert "an answer of another kind, expected a server of relaycast with --face cloudevents" in line


@pytest.mark.parametrize("name", [f"a{TITLE}.json", "a\nb.json", "a\u202eb.json"])
def test_a_file_name_is_shown_as_text(refused: Refused, file: Written, name: str) -> None:
    line = refused("trie", "root", "--state-version", "0", file("3", name))
    assert line.isprintable()
    assert "expected pairs" in line


def test_a_file_name_that_is_no_unicode_is_shown(tmp_path: Path) -> None:
    """Python reads such a name as lone surrogates, which no strict encoding can write."""
    command: list[str | bytes] = [sys.executable, "-m", "relaycast", "run", b"\xff\xfe.toml"]
    ended = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(rb"relaycast: \udcff\udcfe.toml: got no such file or directory")


def test_a_refusal_prints_whatever_it_is_about() -> None:
    refusal = BadInput(f"place{TITLE}", "half \ud800", "\x00", "\u2066")
    assert str(refusal) == r"place\x1b]0;owned\x07: got half \ud800, expected \x00 (\u2066)"
    assert plain("one\ntwo") == "one\ntwo"


def test_a_console_shows_names_and_obeys_its_own_styles(capsys: pytest.CaptureFixture[str]) -> None:
    out = console()
    out.print(f"name {TITLE}", "\ud800", markup=False)
    out.print(Text("a text of ours"))
    print_table(out, ["name"], [[f"cell {TITLE}"]], title=f"title {TITLE}")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert printed.count(r"\x1b]0;owned\x07") == 3
    assert r"\ud800" in printed


@pytest.mark.parametrize("arguments", [["schema"], ["new", "--help"], ["--help"], ["run", "missing", "--help"]])
def test_a_reader_that_goes_away_ends_a_command_as_it_ends_other_tools(arguments: list[str]) -> None:
    """``relaycast ... | head -1``: the exit code of a broken pipe, and no word."""
    command = [sys.executable, "-c", PIPE_IS_CLOSED, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == 141


PIPE_IS_CLOSED = """
import select, sys
from relaycast.__main__ import main
poll = select.poll()
poll.register(1, 0)
poll.poll()
sys.argv[0] = "relaycast"
main()
"""
"""Waits until nobody reads what this process says, then runs its command line."""
