"""The project's own ``scalecodec`` reads the metadata of served chains, version 14 (run with ``-m clients``)."""

from typing import Any

import pytest
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from clients.served import Served
from clients.whole_list import READER
from relaycast_pallets.frame.typed_storage import storage_prefix

pytestmark = pytest.mark.clients


Known = tuple[RuntimeConfigurationObject, Any, int | None]
"""The types of a chain, its metadata, and which parachain it is, if it is one."""


@pytest.fixture(params=[None, READER], ids=["relay chain", "parachain"])
def registry(request: pytest.FixtureRequest, served: Served) -> Known:
    known = RuntimeConfigurationObject(ss58_format=42)
    known.update_type_registry(load_type_registry_preset("core"))
    data = ScaleBytes(served.ask("state_getMetadata", para=request.param))
    metadata = known.create_scale_object("MetadataVersioned", data=data)
    metadata.decode()
    known.add_portable_registry(metadata)
    return known, metadata, request.param


def test_every_storage_item_decodes(registry: Known, served: Served) -> None:
    """Every value of the head's state whose item the metadata declares decodes, to its last byte."""
    known, metadata, para = registry
    at = served.ask("chain_getBlockHash", para=para)
    checked = 0
    for pallet in metadata.pallets:
        for item in pallet.storage or ():
            kind = item.get_value_type_string()
            prefix = f"0x{storage_prefix(pallet.value['storage']['prefix'], item.value['name']).hex()}"
            for key in served.ask("state_getKeysPaged", prefix, 20, None, at, para=para):
                value = served.ask("state_getStorage", key, at, para=para)
                known.create_scale_object(kind, data=ScaleBytes(value), metadata=metadata).decode(check_remaining=True)
                checked += 1
    assert checked > 20


def test_every_extrinsic_of_a_block_decodes(registry: Known, served: Served) -> None:
    known, metadata, para = registry
    for data in served.ask("chain_getBlock", para=para)["block"]["extrinsics"]:
        extrinsic = known.create_scale_object("Extrinsic", data=ScaleBytes(data), metadata=metadata)
        extrinsic.decode(check_remaining=True)
        assert extrinsic.value["call"]["call_function"] in {"set", "enter", "set_validation_data"}
