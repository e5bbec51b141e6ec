"""``relaycast predict`` on the command line: its tables, its sentence, its JSON, and what it refuses."""

import pytest

from command_line import Command, Refused, Written
from relaycast import predict

FULL, DELTA = 0.02, 0.05
"""How far the mean of exact tries may be off the formula."""


def test_the_verb_prints_what_a_person_asks_for(relaycast: Command) -> None:
    ended = relaycast("predict", "--keys", "1000", "--subscribed", "100", "--value", "16", "--updated", "10")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "100 of 1,000 keys, values of 16 bytes, 10 new"
    table = [
        "branches 118.1 21,757 20.4 6,046",
        "leaves 100 5,778 10 578",
        "values outside 0 0 0 0",
        "publisher's part 218.1 27,535 30.4 6,624",
        "a key 275 662",
        "way to the publisher 67 67",
        "static keys (modelled) 5,097 5,097",
        "relay proof 32,699 11,788",
        "own state 430 14,452",
        "relay proof and own state 33,129 26,240",
        "of the budget 0.37% 0.29%",
    ]
    assert lines[4:15] == table
    assert "new keys that a block holds, of 100 read 100" in lines
    assert "updates a second, with a block every 6 s 16.67" in lines
    assert "relay blocks to delivery, with a block on each 2" in lines
    assert lines[-1].startswith("The relay proof of the first block has 32,699 bytes, that of a block with 10 new keys")
    assert "The node cache saves 6,889 bytes in such a block, its upkeep of 14,022 bytes included" in lines[-1]
    assert lines[-1].endswith("of the 100 that are read all 100 may be new every 6 s.")


def test_what_is_printed_of_a_block_adds_up(relaycast: Command) -> None:
    asked = ("predict", "--keys", "70", "--subscribed", "9", "--value", "50", "--updated", "4", "--elsewhere", "3")
    lines = (line.split("  ", 1) for line in relaycast(*asked).out.splitlines())
    rows = {
        name: [int(cell.replace(",", "")) for cell in cells.split()]
        for name, *rest in lines
        for cells in rest
        if name.startswith(("way to", "static keys", "relay proof", "own state")) and not name.startswith("own state:")
    }
    found = relaycast(*asked, "--json").json
    for column, part in enumerate(("full", "delta")):
        values = {row: cells[column] for row, cells in rows.items()}
        both = values.pop("relay proof and own state")
        assert values["relay proof"] == (
            values["way to the publisher"] + values["static keys (modelled)"] + found[part]["proof_bytes"]
        )
        assert both == values["relay proof"] + values["own state"]
    assert rows["own state"][1] - rows["own state"][0] == found["cache"]["upkeep_bytes"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--updated 0", "that of a block with 0 new keys 5,164"),
        ("--updated 24", "costs 4,225 bytes more than it saves in such a block"),
        ("--ground bare --updated 1", "that of a block with 1 new key 553. The node cache saves"),
    ],
)
def test_the_sentence_fits_what_is_asked(relaycast: Command, options: str, said: str) -> None:
    ended = relaycast("predict", "--keys", "24", "--subscribed", "24", "--value", "16", *options.split())
    assert said in ended.out.splitlines()[-1]
    assert ("The node cache" in ended.out.splitlines()[-1]) == ("--updated 0" not in options)


def test_a_scenario_is_estimated_for_each_reader(relaycast: Command) -> None:
    ended = relaycast("predict", "oracle")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert "3001 lender 2000 10 50 10 2,068 2,068 3,103 -3,103" in text
    assert "3001 lender: the relay proof of its first block has 7,232 bytes. Later blocks carry 10,765 bytes" in text
    assert "the cache makes them 40.5% larger" in text
    exchange, lender = relaycast("predict", "oracle", "--json").json["readers"]
    assert (exchange["para_id"], lender["with_cache_bytes"], lender["without_cache_bytes"]) == (3000, 10_765, 7_662)


@pytest.mark.parametrize(
    ("preset", "reason"),
    [
        ("moving-window", "3001 sliding: no formula for 2000: its keys change"),
        ("mass-expiry", "its keys were crafted, expire or go with their publisher"),
    ],
)
def test_subscriptions_without_a_formula_are_named(relaycast: Command, preset: str, reason: str) -> None:
    for ground in ("modelled", "bare"):
        ended = relaycast("predict", preset, "--ground", ground)
        text = " ".join(ended.out.split())
        assert (ended.code, reason in text) == (0, True)
        assert "3001 sliding: the relay proof" not in text


def test_a_value_one_byte_over_the_inline_limit_is_said_where_it_is_chosen(relaycast: Command, file: Written) -> None:
    text = "blocks = 6\n[[parachains]]\nid = 2000\nname = 'feed'\npublish = {{ keys = 2, value_bytes = {} }}\n"
    text += "[[parachains]]\nid = 3000\nsubscribe = [{{ publisher = 2000 }}]\n"
    said = "A value of 24 bytes is one byte over the limit"
    for size, is_said in ((23, False), (24, True), ("[500, 24]", True), (25, False)):
        name = file(text.format(size), "feed.toml")
        outs = [
            relaycast("predict", name).out,
            relaycast("run", name).out,
            relaycast("new", f"copy{str(size)[:3].strip('[')}{is_said}", "--from", name).out,
        ]
        if isinstance(size, int):
            outs.append(relaycast("predict", "--keys", "2", "--subscribed", "2", "--value", str(size)).out)
        assert [said in " ".join(out.split()) for out in outs] == [is_said] * len(outs)
    assert "which takes 33 bytes more than a value of 23" in " ".join(
        relaycast("predict", file(text.format(24), "f.toml")).out.split()
    )


def test_the_verb_measures_beside(relaycast: Command) -> None:
    asked = ("predict", "--keys", "60", "--subscribed", "30", "--value", "40", "8", "--updated", "3", "--measure", "25")
    found = relaycast(*asked, "--json").json
    assert found["measured"]["tries"] == 25
    assert found["full"]["proof_bytes"] == pytest.approx(found["measured"]["full_bytes"], rel=FULL)
    assert found["delta"]["proof_bytes"] == pytest.approx(found["measured"]["delta_bytes"], rel=DELTA)
    assert "measured: the mean of 25 exact tries; off:" in relaycast(*asked).out


def test_json_holds_what_the_face_gives(relaycast: Command) -> None:
    found = relaycast("predict", "--keys", "24", "--subscribed", "8", "--value", "64", "--json").json
    assert found["updated"] == 8
    assert found["full"] == found["delta"]
    full = found["full"]
    assert full["proof_bytes"] == predict.full_proof(24, 8, 64).proof_bytes
    assert full["proof_bytes"] == sum(full[f"{part}_bytes"] for part in ("branch", "leaf", "value"))
    assert full["nodes"] == full["branches"] + full["leaves"] + full["values"]
    assert (full["leaves"], full["values"], full["value_bytes"]) == (8, 8, 8 * predict.entry_bytes(64))
    assert found["ground"]["name"] == "modelled"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--keys 10 --subscribed 11 --value 1", "--subscribed: got 11, expected a number from 1 to --keys = 10"),
        ("--keys 0 --subscribed 1 --value 1", "--keys: got 0, expected a number from 1 to 1,000,000,000"),
        ("--keys 10 --subscribed 5 --value -1", "--value: got -1, expected a number from 0 to 1,048,576"),
        (
            "--keys 10 --subscribed 5 --value 1 --updated 6",
            "--updated: got 6, expected a number from 0 to --subscribed = 5",
        ),
        ("--keys 9 --subscribed 5 --value 1 --elsewhere 5", "--elsewhere: got 5, expected a number from 0 to --keys"),
        ("--keys 9 --subscribed 5 --value 1 --ground kusma", "--ground: got 'kusma', expected the name of a relay"),
        ("--keys 9 --subscribed 5 --value 1 --budget 0", "--budget: got 0, expected a number from 1 to"),
        ("--keys 9 --subscribed 5 --value 1 --block-seconds 0", "--block-seconds: got 0.0, expected a number above 0"),
        ("--keys 9 --subscribed 5 --value 1 --measure 1001", "--measure: got 1001, expected a number from 0 to 1,000"),
        ("--keys 1000000 --subscribed 5 --value 1 --measure 20", "--measure: got 20 tries of 1,000,000 keys"),
        ("--keys 9 --subscribed 5", "predict: got no --value, expected bytes of a value"),
        ("oracle --keys 9", "--keys: got a value beside 'oracle', expected a scenario alone, or --keys, --subscribed"),
        ("oracle --budget 5000", "--budget: got a value beside 'oracle', expected a scenario alone"),
        ("oracle --block-seconds 12", "--block-seconds: got a value beside 'oracle', expected a scenario alone"),
        ("oracel", "predict: got 'oracel', expected a scenario file, or the name of a preset (did you mean oracle?)"),
        ("--keys ten --subscribed 5 --value 1", "predict: --keys: got 'ten', expected a whole number"),
    ],
)
def test_the_verb_refuses_what_cannot_be(refused: Refused, arguments: str, line: str) -> None:
    assert refused("predict", *arguments.split()).startswith(line)
