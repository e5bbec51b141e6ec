"""What a chain's code says of itself, in JSON as a Substrate node writes it."""

from relaycast_node.chain.code import CodeVersion
from relaycast_node.rpc.header_json import hexed


def version_json(version: CodeVersion) -> dict[str, object]:
    return {
        "specName": version.spec_name,
        "implName": version.impl_name,
        "authoringVersion": version.authoring_version,
        "specVersion": version.spec_version,
        "implVersion": version.impl_version,
        "apis": [(hexed(api), number) for api, number in version.apis],
        "transactionVersion": version.transaction_version,
        "systemVersion": version.state_version,
        "stateVersion": version.state_version,
    }


def runtime_json(version: CodeVersion) -> dict[str, object]:
    """Return the version as the new interface has it: APIs by name, no authoring version."""
    return {
        "specName": version.spec_name,
        "implName": version.impl_name,
        "specVersion": version.spec_version,
        "implVersion": version.impl_version,
        "transactionVersion": version.transaction_version,
        "apis": {hexed(api): number for api, number in version.apis},
    }
