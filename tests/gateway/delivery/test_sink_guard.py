"""Which hosts a sink may lead to."""

import asyncio
import threading
from ipaddress import ip_address

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from relaycast_gateway.delivery.http_connector import guarded_session
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused, literal_address, refusal_of

REFUSED_LITERALS = [
    ("127.0.0.1", "loopback"),
    ("127.8.9.10", "loopback"),
    ("127.1", "loopback"),  # two parts: the last one fills three bytes
    ("127.0.1", "loopback"),
    ("2130706433", "loopback"),  # decimal
    ("017700000001", "loopback"),  # octal
    ("0177.0.0.1", "loopback"),
    ("0x7f000001", "loopback"),  # hexadecimal
    ("0X7F.0x0.1", "loopback"),
    ("127.0.0.1.", "loopback"),
    ("0", "unspecified"),
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("10.0.0.1", "private"),
    ("0xa.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("3232235777", "private"),
    ("198.18.0.1", "private"),
    ("100.64.0.1", "carrier-grade NAT"),
    ("100.127.255.255", "carrier-grade NAT"),
    ("100.100.100.200", "carrier-grade NAT"),  # a cloud's metadata
    ("169.254.169.254", "link-local"),  # most clouds' metadata
    ("0xA9FEA9FE", "link-local"),
    ("168.63.129.16", "internal"),
    ("192.0.0.192", "reserved"),
    ("192.0.2.1", "documentation"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.7", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("[::]", "unspecified"),
    ("::1", "loopback"),
    ("[::1]", "loopback"),
    ("0:0:0:0:0:0:0:1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:7f00:1", "loopback"),
    ("::ffff:169.254.169.254", "link-local"),
    ("::127.0.0.1", "loopback"),  # compatible
    ("::ffff:0:127.0.0.1", "loopback"),  # translated
    ("64:ff9b::127.0.0.1", "loopback"),  # NAT64
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b:1::1", "private"),
    ("2002:7f00:1::1", "loopback"),  # 6to4
    ("2002:c0a8:101::", "private"),
    ("2001:0:1::1", "reserved"),  # Teredo
    ("2a00:1450::5efe:192.168.1.1", "private"),  # ISATAP
    ("2a00:1450::200:5efe:10.0.0.1", "private"),
    ("2001:db8::1", "documentation"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("2a00:1450::1%1", "zone"),
    ("fec0::1", "private"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),  # a cloud's metadata
    ("ff02::1", "multicast"),
    ("100::1", "reserved"),
]

PUBLIC_LITERALS = ["1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "16843009", "2606:4700::1111", "64:ff9b::8.8.8.8"]


def no_look_up(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def names(**known: list[str]) -> SinkGuard:
    return SinkGuard(look_up=lambda host, _: known[host])


@pytest.mark.matrix("CE-104")
@pytest.mark.matrix("CE-114")
@pytest.mark.parametrize(("host", "kind"), REFUSED_LITERALS)
def test_an_address_inside_is_refused_in_every_spelling(host: str, kind: str) -> None:
    guard = SinkGuard(look_up=no_look_up)
    with pytest.raises(SinkRefused, match=kind):
        guard.addresses(host, 80)
    with pytest.raises(SinkRefused, match=kind):
        asyncio.run(guard.check_host(host, 80))
    with pytest.raises(SinkRefused, match=kind):
        guard.check_address(host, 80)


@pytest.mark.parametrize("host", PUBLIC_LITERALS)
def test_a_public_address_passes_without_being_looked_up(host: str) -> None:
    literal = literal_address(host)
    assert literal is not None
    assert refusal_of(literal) is None
    assert SinkGuard(look_up=no_look_up).addresses(host, 443) == [(str(literal), 443)]


@pytest.mark.parametrize("host", ["1.2.3.4.5", "0x7f.0.0.0.1", "999.1.1.1", "08.1.1.1", "sink.example", "1.2.3.4 x"])
def test_what_no_resolver_takes_for_an_address_is_a_name(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize("inside", ["127.0.0.1", "::1", "10.0.0.9", "169.254.169.254", "::ffff:10.0.0.1", "fe80::1%2"])
def test_a_name_is_refused_if_any_of_its_addresses_is(inside: str) -> None:
    guard = names(mixed=["1.1.1.1", inside])
    with pytest.raises(SinkRefused, match="the name resolves to") as refused:
        guard.addresses("mixed", 80)
    assert inside not in str(refused.value)  # an answer does not tell what names mean inside


def test_a_public_name_resolves_to_all_its_addresses() -> None:
    guard = names(sink=["1.1.1.1", "2606:4700::1111"])
    assert guard.addresses("SINK.", 80) == [("1.1.1.1", 80), ("2606:4700::1111", 80)]
    assert asyncio.run(guard.resolve("sink", 80)) == guard.addresses("sink", 80)


@pytest.mark.parametrize("host", ["", ".", "a b", "a\nb", "a" * 64, "\x00"])
def test_what_is_no_host_name_is_refused(host: str) -> None:
    with pytest.raises(SinkRefused, match="no host name"):
        SinkGuard(look_up=no_look_up).addresses(host, 80)


def test_full_width_digits_are_looked_up_as_the_digits_they_stand_for() -> None:
    guard = names(**{"127.0.0.1": ["127.0.0.1"]})
    with pytest.raises(SinkRefused, match="loopback"):
        guard.addresses("１２７。０。０。１", 80)  # noqa: RUF001 - the point


def test_a_name_that_does_not_resolve_passes_now_and_fails_when_it_is_connected_to() -> None:
    def nowhere(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    guard = SinkGuard(look_up=nowhere)
    asyncio.run(guard.check_host("sink.example", 80))
    with pytest.raises(OSError, match="not known"):
        guard.addresses("sink.example", 80)
    with pytest.raises(OSError, match="no address"):
        names(sink=[]).addresses("sink", 80)


@pytest.mark.matrix("CE-104")
@pytest.mark.parametrize(
    ("allow", "host", "port", "passes"),
    [
        ("127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1", "::ffff:127.0.0.1", 80, True),
        ("127.0.0.1", "2130706433", 80, True),
        ("127.0.0.1", "127.0.0.2", 80, False),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "127.0.0.1", 80, False),
        ("10.1.0.0/16", "10.1.2.3", 80, True),
        ("10.1.0.0/16", "10.2.0.1", 80, False),
        ("10.1.0.0/16", "inside", 80, True),  # resolves to 10.1.0.9
        ("::1", "[::1]", 80, True),
        ("[::1]:99", "::1", 99, True),
        ("[::1]:99", "::1", 98, False),
        ("fd00::/8", "fd12::1", 1, True),
        ("fd00::/8", "10.0.0.1", 1, False),
        ("inside", "INSIDE.", 80, True),
        ("Inside.:80", "inside", 80, True),
        ("inside:80", "inside", 81, False),
        ("inside", "10.1.0.9", 80, False),  # the name is allowed, not what it means
        ("other", "inside", 80, False),
    ],
)
def test_allowing_goes_by_name_address_port_and_network(allow: str, host: str, port: int, passes: bool) -> None:
    guard = SinkGuard([allow], look_up=lambda *_: ["10.1.0.9"])
    if passes:
        assert len(guard.addresses(host, port)) == 1
    else:
        with pytest.raises(SinkRefused, match="--allow-sink"):
            guard.addresses(host, port)


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.1/8", "a/b", "http://a", "a:0", "a:65536", "a:b", "a b", "[a]", "*", "u@h", "1.2.3.4.5/8"]
)
def test_an_entry_that_allows_nothing_is_an_error_that_quotes_it(entry: str) -> None:
    with pytest.raises(ValueError, match="--allow-sink: got '"):
        SinkGuard([entry])


@pytest.mark.matrix("CE-114")
def test_a_name_that_resolves_elsewhere_the_next_time_gains_nothing() -> None:
    answers = iter([["1.1.1.1"], ["127.0.0.1"]])
    guard = SinkGuard(look_up=lambda *_: next(answers))
    assert guard.addresses("rebinding.example", 80) == [("1.1.1.1", 80)]

    async def main() -> None:
        async with guarded_session(guard) as session:
            with pytest.raises(SinkRefused, match="loopback"):
                await session.get("http://rebinding.example/")

    asyncio.run(main())


@pytest.mark.matrix("CE-114")
@pytest.mark.parametrize("spelling", ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "localhost"])
def test_a_request_reaches_loopback_only_where_it_is_allowed(spelling: str) -> None:
    async def main() -> tuple[bool, int]:
        application = web.Application()
        seen: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            seen.append(request.path)
            return web.Response(status=204)

        application.router.add_get("/", answer)
        async with TestServer(application) as server:
            async with guarded_session(SinkGuard()) as session:
                with pytest.raises(SinkRefused):
                    await session.get(f"http://{spelling}:{server.port}/")
            assert not seen
            async with guarded_session(SinkGuard(["127.0.0.1", "localhost"])) as session:
                if spelling == "[::1]":  # allowed is IPv4 only
                    with pytest.raises(SinkRefused):
                        await session.get(f"http://{spelling}:{server.port}/")
                    return True, 204
                async with session.get(f"http://{spelling}:{server.port}/") as response:
                    return bool(seen), response.status

    assert asyncio.run(main()) == (True, 204)


@pytest.mark.matrix("CE-114")
def test_proxy_variables_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    async def main() -> str:
        application = web.Application()

        async def answer(request: web.Request) -> web.Response:
            return web.Response(text=request.path)

        application.router.add_get("/direct", answer)
        async with (
            TestServer(application) as server,
            guarded_session(SinkGuard(["127.0.0.1"])) as session,
            session.get(f"http://127.0.0.1:{server.port}/direct") as response,
        ):
            return await response.text()

    assert asyncio.run(main()) == "/direct"


def test_every_refused_range_of_the_standard_library_is_refused_here() -> None:
    """The library's own notion of global addresses is an oracle for the table's edges, one address per /8 and /16."""
    for first in range(256):
        for second in range(256):
            address = ip_address(f"{first}.{second}.0.1")
            if not address.is_global or address.is_multicast:
                assert refusal_of(address) is not None, address


def test_names_that_resolve_slowly_hold_up_neither_other_work_nor_other_names() -> None:
    answered = threading.Event()

    def look_up(host: str, port: int) -> list[str]:
        if host != "quick.example":
            answered.wait(60)
        return ["1.1.1.1"]

    async def main() -> None:
        guard = SinkGuard(look_up=look_up)
        names = [f"slow{number % 16}.example" for number in range(64)]
        slow = [asyncio.create_task(guard.resolve(name, 80)) for name in names]
        try:
            async with asyncio.timeout(30):
                assert await asyncio.to_thread(lambda: 7) == 7
                assert await guard.resolve("quick.example", 80) == [("1.1.1.1", 80)]
            assert not any(task.done() for task in slow)
        finally:
            answered.set()
        assert await asyncio.gather(*slow) == [[("1.1.1.1", 80)]] * 64

    asyncio.run(main())


def test_a_name_that_does_not_resolve_in_time_is_one_that_does_not_resolve() -> None:
    answered = threading.Event()

    def look_up(host: str, port: int) -> list[str]:
        answered.wait(60)
        return ["1.1.1.1"]

    async def main() -> None:
        guard = SinkGuard(look_up=look_up, look_up_seconds=0.01)
        try:
            for _ in range(2):
                with pytest.raises(OSError, match=r"slow\.example was not resolved within 0\.01 s"):
                    await guard.resolve("slow.example", 80)
        finally:
            answered.set()

    asyncio.run(main())
