"""TLS on one side only, certificates that are not trusted, files that are swapped: each is one line that says so."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import relaycast as rc
from app.serve_process import ServeProcess
from command_line import Refused
from peers import missing
from relaycast.refusal import BadInput
from relaycast.serve.history_reader import HistoryReader
from relaycast.serve.in_process import ServedNetwork

IMPORT = "import rpc {} --out f.witness.json.gz"
CLIENTS = {
    "http": [
        "subscribe list --url {}",
        "icrc call icrc72_get_broadcaster_stats --url {}",
        "icrc listen a.b --url {}",
        IMPORT,
    ],
    "ws": ["history a.b --url {}", "pov inspect {}", IMPORT],
}
CASES = [(scheme, command) for scheme, commands in CLIENTS.items() for command in commands]
NO_PATIENCE = 0.5


def _pair(folder: Path, name: str) -> tuple[str, str]:
    """Make a certificate for 127.0.0.1 and its key; return their files."""
    if shutil.which("openssl") is None:
        missing("no openssl here")
    cert, key = folder / f"{name}-cert.pem", folder / f"{name}-key.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    made += " -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *made.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return str(cert), str(key)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return _pair(tmp_path_factory.mktemp("pair"), "a")


@pytest.fixture(scope="module")
def plain() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", history=["a."], rawsocket_port=0) as chains:
        yield chains


@pytest.fixture(scope="module")
def secure(pair: tuple[str, str]) -> Iterator[ServeProcess]:
    cert, key = pair
    with ServeProcess("oracle", "--rawsocket-port", "0", "--tls-cert", cert, "--tls-key", key) as server:
        yield server


@pytest.mark.parametrize(("scheme", "command"), CASES)
def test_a_plain_client_of_a_port_with_tls_is_told_of_it_at_once(
    secure: ServeProcess, refused: Refused, scheme: str, command: str
) -> None:
    url = f"{scheme}://127.0.0.1:{secure.port}"
    line = refused(*command.format(url).split())
    assert line.endswith(f"{url}: got a port that speaks TLS, expected {scheme}s://127.0.0.1:{secure.port}")


@pytest.mark.parametrize(("scheme", "command"), CASES)
def test_a_client_with_tls_of_a_plain_port_is_told_of_it(
    plain: ServedNetwork, refused: Refused, scheme: str, command: str
) -> None:
    place = plain.http_url.removeprefix("http://")
    line = refused(*command.format(f"{scheme}s://{place}").split())
    assert line.endswith(f"{scheme}s://{place}: got a port without TLS, expected one with it, or {scheme}://{place}")


@pytest.mark.parametrize(("scheme", "command"), CASES)
def test_a_certificate_that_is_not_trusted_is_told_apart(
    secure: ServeProcess, refused: Refused, scheme: str, command: str
) -> None:
    line = refused(*command.format(f"{scheme}s://127.0.0.1:{secure.port}").split())
    assert "got a certificate that this machine does not trust ('self" in line
    assert line.endswith("expected one that it trusts: SSL_CERT_FILE names a file with more of them")


def _joined(url: str) -> str:
    """Return the line in which a client of the router ends."""

    async def join() -> None:
        async with HistoryReader.joined(url, "relaycast", patience_seconds=NO_PATIENCE):
            pass

    with pytest.raises(BadInput) as told:
        asyncio.run(join())
    return str(told.value)


def test_rawsocket_tells_of_tls_on_one_side(secure: ServeProcess, plain: ServedNetwork) -> None:
    found = re.search(r"tcps://127\.0\.0\.1:(\d+)", "".join(secure.lines))
    assert found is not None
    url = f"tcp://127.0.0.1:{found[1]}"
    assert _joined(url) == f"--url {url}: got a port that speaks TLS, expected tcps://127.0.0.1:{found[1]}"
    assert "got a certificate that this machine does not trust" in _joined(f"tcps://127.0.0.1:{found[1]}")
    place = plain.rawsocket_url.removeprefix("tcp://")
    line = f"--url tcps://{place}: got a port without TLS, expected one with it, or tcp://{place}"
    assert _joined(f"tcps://{place}") == line


def test_rawsocket_of_a_port_of_http_is_told_so(plain: ServedNetwork) -> None:
    url = plain.http_url.replace("http", "tcp")
    assert _joined(url).startswith(f"--url {url}: got an HTTP answer instead of a RawSocket handshake: use ws:// or")


def test_a_router_that_is_not_there_is_named_once() -> None:
    assert _joined("ws://127.0.0.1:1/wamp") == (
        "--url ws://127.0.0.1:1/wamp: got connection refused, expected a router that runs: relaycast serve"
    )


@pytest.mark.parametrize(
    ("cert", "key", "line"),
    [
        ("key", "cert", "--tls-cert key: got a private key, expected a certificate in PEM (are --tls-cert and --tls-k"),
        ("cert", "cert", "--tls-key cert: got a certificate, expected a private key in PEM (are --tls-cert and --tls"),
        ("cert", "missing", "--tls-key missing: got no such file or directory, expected a private key in PEM"),
        ("missing", "key", "--tls-cert missing: got no such file or directory, expected a certificate in PEM"),
        ("text", "key", "--tls-cert text: got a file without one, expected a certificate in PEM"),
        ("half", "key", "--tls-cert half: got PEM that does not parse, there or in key, expected a certificate and"),
        ("cert", "other", "--tls-key other: got the key of another certificate, expected the one of cert"),
        ("cert", "locked", "--tls-key locked: got an encrypted key, expected one without a passphrase"),
    ],
)
def test_files_of_tls_that_do_not_fit_say_which_and_why(
    refused: Refused, pair: tuple[str, str], tmp_path: Path, cert: str, key: str, line: str
) -> None:
    for name, file in zip(("cert", "key"), pair, strict=True):
        shutil.copy(file, tmp_path / name)
    text = (tmp_path / "cert").read_text()
    (tmp_path / "text").write_text("no PEM")
    (tmp_path / "half").write_text(text[: len(text) // 2] + "\n-----END CERTIFICATE-----\n")
    if key == "other":
        shutil.copy(_pair(tmp_path, "b")[1], tmp_path / "other")
    if key == "locked":
        locked = "openssl ec -in key -aes256 -passout pass:secret -out locked"
        subprocess.run(locked.split(), check=True, capture_output=True, cwd=tmp_path)
    assert refused("serve", "oracle", "--port", "0", "--tls-cert", cert, "--tls-key", key).startswith(line)
