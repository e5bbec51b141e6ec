"""Clients prove who they are, and nobody learns who else could."""

import asyncio
import json
from collections.abc import Callable
from itertools import product

import pytest

from gateway.wamp.memory_link import ROLES, MemoryClient
from gateway.wamp.running_router import running
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.wamp.authentication import (
    Authenticated,
    Authenticator,
    PendingProof,
    Salting,
    WampUser,
    derived_key,
    sign,
)
from relaycast_gateway.wamp.messages import (
    AbortMessage,
    AuthenticateMessage,
    ChallengeMessage,
    HelloMessage,
    WelcomeMessage,
)
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig

TOKEN = "a token of ann's"
SECRET = "a secret of salted bob"
SALTING = Salting("salt of bob", iterations=10, keylen=32)
ANN = WampUser.of_token("ann", "user", TOKEN)
BOB = WampUser.of("bob", "admin", secret=SECRET, salt=SALTING)
CARL = WampUser.of("carl", "user", ticket="a ticket of carl's")


def in_loop(scene: Callable[[Router], None], *users: WampUser) -> None:
    """Run ``scene`` with a router that knows ``users``."""

    async def run() -> None:
        async with running(RouterConfig.default(users or (ANN, BOB, CARL))) as (router, _):
            scene(router)

    asyncio.run(run())


def hello(router: Router, authid: str | None, *methods: str) -> MemoryClient:
    client = MemoryClient(router)
    details = {"roles": ROLES, "authmethods": list(methods)}
    client.say(HelloMessage("relaycast", details if authid is None else {**details, "authid": authid}))
    return client


@pytest.mark.parametrize(
    ("challenge", "key", "proof"),
    [
        ("[1, 2, 3]", b"L3L1YUE8Txlw", "1njQtmmeYO41N5EWEzD2kAjjEKRZ5kPZt/TzpYXOzR0="),  # autobahn's own test
        (
            '{"nonce":"cdcb3b12d56e12825be99f38f55ba43f","authprovider":"provider","authid":"foo","authrole":"admin",'
            '"authmethod":"wampcra","session":123,"timestamp":"2024-05-07T09:25:13.307Z"}',
            b"6d9b906ad60d1f4dd796dbadcc2e2252310565ccdc6fe10b289df5684faf2a46",
            "DIVL3bKs/Ei91eQyYznzUqEsiTmX705BNEXuicNpi8A=",  # wampproto's own test
        ),
    ],
)
def test_a_proof_is_the_signature_that_other_implementations_make(challenge: str, key: bytes, proof: str) -> None:
    assert sign(challenge, key) == proof


def test_a_salted_key_is_the_one_that_other_implementations_derive() -> None:
    assert derived_key("secret1", "salt123", iterations=100, keylen=16) == b"prq7+YkJ1/KlW1X0YczMHw=="  # crossbar's


@pytest.mark.matrix("WAMP-62")
def test_a_ticket_opens_a_session() -> None:
    def scene(router: Router) -> None:
        client = hello(router, "ann", "ticket")
        assert client.next(ChallengeMessage).method == "ticket"
        client.say(AuthenticateMessage(TOKEN, {}))
        details = client.next(WelcomeMessage).details
        assert (details["authid"], details["authrole"], details["authmethod"]) == ("ann", "user", "ticket")
        assert details["authprovider"] == "static"

    in_loop(scene)


@pytest.mark.matrix("WAMP-62")
@pytest.mark.parametrize("authid", ["ann", "bob"])
def test_a_secret_opens_a_session_without_being_sent(authid: str) -> None:
    def scene(router: Router) -> None:
        client = hello(router, authid, "wampcra")
        message = client.next(ChallengeMessage)
        asked = json.loads(message.extra["challenge"])
        assert asked["session"] == client.session.id
        assert {"authid", "authrole", "authmethod", "authprovider", "session", "nonce", "timestamp"} == asked.keys()
        key = TOKEN.encode()
        if authid == "bob":
            assert message.extra["salt"] == SALTING.salt
            key = derived_key(SECRET, message.extra["salt"], iterations=message.extra["iterations"], keylen=32)
        client.say(AuthenticateMessage(sign(message.extra["challenge"], key), {}))
        details = client.next(WelcomeMessage).details
        assert details["authid"] == authid
        assert details["authrole"] == asked["authrole"]
        assert details["authmethod"] == "wampcra"

    in_loop(scene)


@pytest.mark.matrix("WAMP-62")
@pytest.mark.parametrize(("authid", "method"), list(product(["ann", "bob", "nobody"], ["ticket", "wampcra"])))
def test_a_wrong_proof_gets_the_same_answer_whoever_is_named(authid: str, method: str) -> None:
    def scene(router: Router) -> None:
        client = hello(router, authid, "ticket", "wampcra")
        client.next(ChallengeMessage)
        client.say(AuthenticateMessage("no proof of anybody", {}))
        answer = client.next(AbortMessage)
        assert answer == AbortMessage({"message": "authid or proof are not right"}, "wamp.error.authentication_failed")
        assert client.link.is_closed

    in_loop(scene)


def test_an_unknown_authid_is_challenged_like_a_user_and_alike_each_time() -> None:
    def scene(router: Router) -> None:
        seen = []
        for _ in range(3):
            message = hello(router, "nobody", "wampcra").next(ChallengeMessage)
            asked = json.loads(message.extra["challenge"])
            seen.append((asked["authrole"], message.extra["salt"], message.extra["iterations"]))
            assert asked["authid"] == "nobody"
        assert len(set(seen)) == 1
        assert len(seen[0][1]) == len(SALTING.salt)
        assert seen[0][1] != SALTING.salt

    in_loop(scene, BOB)


def test_a_decoy_has_a_salt_as_long_as_a_users() -> None:
    long = WampUser.of("bob", "admin", secret=SECRET, salt=Salting("salt of bob" * 1_000, iterations=1))
    decoys = [Authenticator([long], clock=VirtualClock()).begin(["wampcra"], "nobody", 1) for _ in range(2)]
    salts = [it.extra["salt"] for it in decoys if isinstance(it, PendingProof)]
    assert [len(salt) for salt in salts] == [11_000, 11_000]
    assert salts[0] != salts[1]


def test_a_decoy_accepts_no_proof_at_all() -> None:
    authenticator = Authenticator([ANN], clock=VirtualClock())
    for method, key in product(("ticket", "wampcra"), (b"", TOKEN.encode())):
        pending = authenticator.begin([method], "nobody", 1)
        assert isinstance(pending, PendingProof)
        proof = TOKEN if method == "ticket" else sign(pending.extra["challenge"], key)
        assert pending.accept(proof) is None


def test_a_challenge_takes_one_proof_and_belongs_to_one_session() -> None:
    authenticator = Authenticator([ANN], clock=VirtualClock())
    first, second = (authenticator.begin(["wampcra"], "ann", session) for session in (1, 2))
    assert isinstance(first, PendingProof)
    assert isinstance(second, PendingProof)
    proof = sign(first.extra["challenge"], TOKEN.encode())
    assert second.accept(proof) is None
    assert first.accept(proof) == Authenticated("ann", "user", "wampcra")
    assert first.accept(proof) is None


def test_a_second_proof_ends_the_session() -> None:
    def scene(router: Router) -> None:
        client = hello(router, "ann", "ticket")
        client.next(ChallengeMessage)
        client.say(AuthenticateMessage(TOKEN, {}))
        client.next(WelcomeMessage)
        client.say(AuthenticateMessage(TOKEN, {}))
        assert client.next(AbortMessage).reason == "wamp.error.protocol_violation"

    in_loop(scene)


@pytest.mark.parametrize(
    ("authid", "offered", "chosen"),
    [
        ("ann", ("ticket", "wampcra"), "wampcra"),  # the router's order counts, not the client's
        ("ann", ("anonymous", "ticket"), "ticket"),
        ("carl", ("wampcra", "ticket"), "ticket"),  # the only one that this user has
        ("ann", ("cryptosign", "scram", "wampcra"), "wampcra"),
    ],
)
def test_the_router_prefers_the_method_that_sends_no_secret(authid: str, offered: tuple[str, ...], chosen: str) -> None:
    in_loop(lambda router: _assert_challenged(hello(router, authid, *offered), chosen))


def _assert_challenged(client: MemoryClient, method: str) -> None:
    assert client.next(ChallengeMessage).method == method


@pytest.mark.matrix("WAMP-62")
@pytest.mark.parametrize(
    ("authid", "offered"),
    [
        (None, ("anonymous",)),  # there are users, so nobody joins without a proof
        (None, ("ticket", "wampcra")),  # no authid
        ("", ("ticket",)),
        ("ann", ("cryptosign", "scram")),
        ("ann", ()),
        ("carl", ("wampcra",)),  # has a ticket only
    ],
)
def test_a_client_without_a_method_is_refused(authid: str | None, offered: tuple[str, ...]) -> None:
    def scene(router: Router) -> None:
        client = hello(router, authid, *offered)
        assert client.next(AbortMessage).reason == "wamp.error.no_matching_auth_method"
        assert client.link.is_closed

    in_loop(scene)


def test_an_anonymous_client_cannot_choose_its_name() -> None:
    authenticator = Authenticator(anonymous_role="guest", clock=VirtualClock())
    first, second = (authenticator.begin(["anonymous"], "ann", session) for session in (1, 2))
    assert isinstance(first, Authenticated)
    assert isinstance(second, Authenticated)
    assert first.authid not in ("ann", second.authid)
    assert first.authrole == "guest"


def test_bearers_of_different_tokens_may_share_a_name() -> None:
    users = [WampUser.of_token("ann", "user", TOKEN), WampUser.of_token("ann", "admin", "another token of ann")]
    for method in ("ticket", "wampcra"):
        pending = Authenticator(users, clock=VirtualClock()).begin([method], "ann", 1)
        assert isinstance(pending, PendingProof)
        token = "another token of ann"
        found = pending.accept(token if method == "ticket" else sign(pending.extra["challenge"], token.encode()))
        assert found is not None
        assert found.authrole == "admin"


def test_secrets_are_in_no_text() -> None:
    config = RouterConfig.default([ANN, BOB, CARL])
    texts = [repr(each) for each in (ANN, BOB, CARL, config, config.realms, BOB.salting)]
    for secret in (TOKEN, SECRET, derived_key(SECRET, SALTING.salt, iterations=10).decode(), "a ticket of carl's"):
        assert not [text for text in texts if secret in text]
