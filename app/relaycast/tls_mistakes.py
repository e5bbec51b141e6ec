"""Why a client cannot connect to a URL: TLS on one side only, or an untrusted certificate.

Errors of the libraries do not show the first: a TLS port ends a plain connection silently. So after a failed
connection, the port is probed with a TLS handshake.
"""

import socket
import ssl
from urllib.parse import urlsplit

from relaycast.refusal import BadInput, shown

PROBE_SECONDS = 2.0
"""Time limit of the probe."""

SECURE = {"http": "https", "ws": "wss", "tcp": "tcps", "rs": "rss"}
PLAIN = {secure: plain for plain, secure in SECURE.items()}


def tls_mistake(url: str, error: BaseException, place: str) -> BadInput | None:
    """Return the TLS mistake behind ``error`` of a connection to ``url``, or ``None``.

    Opens a connection to the port, and blocks for ``PROBE_SECONDS`` at most.
    """
    scheme = url.partition(":")[0].lower()
    untrusted = [it for it in _causes(error) if isinstance(it, ssl.SSLCertVerificationError)]
    if untrusted:
        said = next((it.verify_message for it in untrusted if hasattr(it, "verify_message")), "not valid")
        got = f"a certificate that this machine does not trust ({shown(said)})"
        return BadInput(place, got, "one that it trusts: SSL_CERT_FILE names a file with more of them")
    has_tls = _speaks_tls(url)
    if has_tls and scheme in SECURE:
        return BadInput(place, "a port that speaks TLS", f"{SECURE[scheme]}{url[len(scheme) :]}")
    if has_tls is False and scheme in PLAIN:
        return BadInput(place, "a port without TLS", f"one with it, or {PLAIN[scheme]}{url[len(scheme) :]}")
    return None


def _speaks_tls(url: str) -> bool | None:
    """Return whether the port of ``url`` answers a TLS handshake; ``None`` if it does not answer at all."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme in PLAIN else 80)
        connection = socket.create_connection((parts.hostname or "", port), timeout=PROBE_SECONDS)
    except (OSError, ValueError):
        return None
    with connection:
        try:
            context.wrap_socket(connection, server_hostname=parts.hostname).close()
        except TimeoutError:
            return None
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")  # an alert is of TLS
        except (OSError, ValueError):
            return False
    return True


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, as asyncio, aiohttp and urllib name them."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
            waiting += [getattr(one, name, None) for name in ("reason", "os_error", "certificate_error")]
    return found
