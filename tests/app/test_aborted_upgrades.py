"""A client that asks for a WebSocket and is gone before the answer leaves nothing in the log."""

import socket
import struct

import pytest

from app.serve_process import ServeProcess

RESETS = 50

UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Protocol: wamp.2.json\r\n\r\n"
)


def reset(port: int, data: bytes) -> None:
    """Send data, and break the connection off at once."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(data)


@pytest.mark.slow
def test_aborted_upgrades_are_not_logged() -> None:
    with ServeProcess("oracle", "--block-time", "manual") as served:
        for path in ("/", "/para/2000", "/wamp"):
            for _ in range(RESETS):
                reset(served.port, UPGRADE.format(path=path).encode())
        assert served.ask("system_health")["isSyncing"] is False
        served.stop()  # which looks at what was logged
