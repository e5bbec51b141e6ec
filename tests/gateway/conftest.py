"""What the gateway's tests share: a certificate for TLS on loopback."""

import shutil
import ssl
import subprocess

import pytest

from peers import missing

Encryption = tuple[ssl.SSLContext, ssl.SSLContext]
"""Of a server, and of a client that trusts it."""


@pytest.fixture(scope="session")
def encryption(tmp_path_factory: pytest.TempPathFactory) -> Encryption:
    program = shutil.which("openssl")
    if program is None:
        missing("openssl is not installed; it makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))
