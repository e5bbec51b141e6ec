"""A crowd of clients that connect and then do nothing, as a process of its own: ``python serve_crowd.py PORT COUNT``.

Says ``there`` when all have connected, keeps them until a line comes, and then ends.
"""

import resource
import socket
import sys
from contextlib import suppress

SENT = (b"", b"GET / HTTP/1.1\r\nHost: local", b"\x16\x03\x01\x02\x00\x01")
"""Nothing, half a request, and the beginning of a handshake of TLS."""

OTHER_FILES = 50


def room() -> int:
    """Return how many connections one process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - OTHER_FILES


def main(port: int, count: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    for number in range(count):
        client = socket.create_connection(("127.0.0.1", port), timeout=60)
        with suppress(ConnectionError):  # it is dropped already
            client.sendall(SENT[number % len(SENT)])
        held.append(client)
    print("there", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
