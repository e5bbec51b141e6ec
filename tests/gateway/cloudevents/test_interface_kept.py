"""Subscriptions in files: restarts, who may read the files, one gateway for each folder."""

import asyncio
from pathlib import Path

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, served


@pytest.mark.matrix("CE-03", "CE-88")
def test_a_subscription_survives_a_restart_and_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with served(folder=tmp_path) as api:
            made = await api.create(types=["io.relaycast.data.published"], config={"interval": 2})
            updated = await api.create()
            other = f"/subscriptions/{updated['id']}"
            await api.ask("PUT", other, MINIMAL | {"sink": "http://127.0.0.1:9/other"})
            deleted = await api.create()
            await api.ask("DELETE", f"/subscriptions/{deleted['id']}")
            api.publish(1, 2, 3)
            await api.settled()
            assert api.sinks.bodies() == ["2"]
        async with served(folder=tmp_path) as api:
            path = f"/subscriptions/{made['id']}"
            assert (await api.ask("GET", path)).json == made
            assert (await api.ask("GET", other)).headers["ETag"] == '"2"'
            assert len((await api.ask("GET", "/subscriptions")).json) == 2
            api.publish(4, 5, 6)
            await api.settled()
            assert api.sinks.bodies() == ["4", "6"]
            assert api.sinks.bodies("http://127.0.0.1:9/other") == ["4", "5", "6"]
            fares = (await api.ask("GET", f"{path}/delivery")).json
            assert (fares["delivered"], fares["behind"]) == (3, 0)
            fresh = await api.create()
            assert fresh["id"] > made["id"]

    asyncio.run(run())


def test_files_are_their_owners_alone_also_those_that_others_could_read(tmp_path: Path) -> None:
    for name in ("events", "deliveries", "subscriptions"):
        file = tmp_path / f"{name}.sqlite"
        file.touch()
        file.chmod(0o644)

    async def run() -> None:
        async with served(folder=tmp_path) as api:
            await api.create()
            api.publish(1)
            await api.settled()
            modes = {
                file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("*.sqlite*") if file.suffix != ".lock"
            }
            assert {"events.sqlite", "events.sqlite-wal", "deliveries.sqlite", "subscriptions.sqlite-wal"} < set(modes)
            assert set(modes.values()) == {0o600}, modes

    asyncio.run(run())


def test_two_gateways_do_not_share_a_folder(tmp_path: Path) -> None:
    from relaycast_gateway.gateway import Gateway  # noqa: PLC0415
    from relaycast_ledger.exceptions import WorkFolderInUse  # noqa: PLC0415

    async def run() -> None:
        async with served(folder=tmp_path):
            with pytest.raises(WorkFolderInUse):
                Gateway.open(tmp_path)

    asyncio.run(run())
