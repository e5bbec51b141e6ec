"""Why a client of a URL met no server: TLS on one side only, or a certificate that is not trusted.

Errors of the libraries do not tell the first: a port with TLS ends a plain connection without a word. So the port is
asked by a handshake of TLS, after a connection has failed.
"""

import socket
import ssl
from urllib.parse import urlsplit

from relaycast.refusal import BadInput, shown

PROBE_SECONDS = 2.0
"""The longest that a port is asked whether it speaks TLS."""

SECURE = {"http": "https", "ws": "wss", "tcp": "tcps", "rs": "rss"}
PLAIN = {secure: plain for plain, secure in SECURE.items()}


def tls_mistake(url: str, error: BaseException, place: str) -> BadInput | None:
    """Return what is wrong with the TLS of ``url``, whose connection ended with ``error``; ``None`` where nothing is.

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
    """Return whether the port of ``url`` answers a handshake of TLS; ``None`` where nobody answers at all."""
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
    """Return an error with those that led to it, as asyncio, aiohttp and urllib name them."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
            waiting += [getattr(one, name, None) for name in ("reason", "os_error", "certificate_error")]
    return found
