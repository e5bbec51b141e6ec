"""A small scenario whose values and changes can be chosen, for sizes that grow and shrink."""

WEATHER = """
name = "weather"
blocks = 10
seed = 3
[[parachains]]
id = 2000
publish = { keys = 12, value_bytes = VALUE, changed = CHANGED }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }]
"""


def weather(*, value: int = 16, changed: int = 2) -> str:
    return WEATHER.replace("VALUE", str(value)).replace("CHANGED", str(changed))
