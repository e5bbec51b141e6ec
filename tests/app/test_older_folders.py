"""Folders that relaycast 0.1.0 wrote: what clients read of them is what they read then, and work goes on from there."""

import json
from hashlib import blake2b
from pathlib import Path
from urllib.request import urlopen

import pytest

import relaycast as rc
from app.test_serve_data import answers
from older_folders import unpacked

ANSWERS = "37ec39cd79b4c300f6672bd81fce9d0b"
"""Digest of all that clients read of the chains, taken from the server that wrote the folders."""


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_a_server_goes_on_from_the_folder_of_an_older_version(tmp_path: Path, ended: str) -> None:
    with rc.serve("oracle", data=unpacked(ended, tmp_path), allow_sink=["localhost:9"]) as chains:
        assert blake2b(json.dumps(answers(chains)).encode(), digest_size=16).hexdigest() == ANSWERS
        with urlopen(f"{chains.url.replace('ws', 'http')}/subscriptions", timeout=60) as response:
            (subscription,) = json.load(response)
        assert subscription["id"] == "01M8GCM6NJN4TWA4S9QBSCC25X"
        chains.new_block(2)
        assert chains.call("state_getStorage", "0x61") == "0x62"
