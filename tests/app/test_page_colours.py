"""Colours of pages: they can be told apart by everyone, and stand out from the ground, in light and in dark."""

import math
import re
from itertools import combinations
from pathlib import Path

import pytest

import relaycast

CSS = (Path(relaycast.__file__).parent / "report" / "pages" / "page.css").read_text()
CAUSES = ("static", "top", "new", "changed", "unseen", "value", "own")
READERS = ("r0", "r1", "r2", "r3", "r4", "r5")

# Machado, Oliveira, Fernandes (2009): what is left of linear RGB at full severity.
SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}

Colour = tuple[float, float, float]


def palettes() -> dict[str, dict[str, Colour]]:
    light, dark = re.findall(r":root \{([^}]*)\}", CSS)[:2]
    found = {}
    for name, text in (("light", light), ("dark", dark)):
        pairs = re.findall(r"--([\w]+): #([0-9a-f]{3,6});", text)
        found[name] = {key: linear(value if len(value) == 6 else "".join(c * 2 for c in value)) for key, value in pairs}
    return found


def linear(text: str) -> Colour:
    parts = [int(text[index : index + 2], 16) / 255 for index in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


def seen(colour: Colour, sight: str) -> Colour:
    red, green, blue = (
        min(1.0, max(0.0, sum(weight * part for weight, part in zip(row, colour, strict=True))))
        for row in SIGHTS[sight]
    )
    return red, green, blue


def lab(colour: Colour) -> Colour:
    """Return the colour in Oklab, where distances are what people see."""
    red, green, blue = colour
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.793617785 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.428592205 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.808675766 * short,
    )


def apart(left: Colour, right: Colour) -> float:
    return math.dist(lab(left), lab(right))


def contrast(left: Colour, right: Colour) -> float:
    weights = (0.2126, 0.7152, 0.0722)
    dark, light = sorted(sum(w * part for w, part in zip(weights, colour, strict=True)) for colour in (left, right))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("names", [CAUSES, READERS], ids=["causes", "readers"])
def test_colours_can_be_told_apart(ground: str, sight: str, names: tuple[str, ...]) -> None:
    colours = {name: seen(palettes()[ground][name], sight) for name in names}
    close = {
        pair: round(apart(colours[pair[0]], colours[pair[1]]), 3)
        for pair in combinations(names, 2)
        if apart(colours[pair[0]], colours[pair[1]]) < 0.08
    }
    assert not close


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_text_and_shapes_stand_out_from_what_is_behind_them(ground: str) -> None:
    colours = palettes()[ground]
    for behind in ("paper", "card"):
        for text in ("ink", "soft", "accent", "good", "warn", "bad"):
            assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
        for shape in (*CAUSES, *READERS, "out", "given"):
            assert contrast(colours[shape], colours[behind]) >= 2.9, (shape, behind)


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_bytes_written_on_a_node_can_be_read(ground: str) -> None:
    colours = palettes()[ground]
    on_pale = re.search(r"\.icicle :is\(([^)]*)\) \+ text \{ fill: #([0-9a-f]+);", CSS)
    on_deep = re.search(r"\.icicle \.t-(\w+) \+ text \{ fill: #([0-9a-f]+);", CSS)
    assert on_pale
    assert on_deep
    written = dict.fromkeys(re.findall(r"t-(\w+)", on_pale[1]), linear(on_pale[2] * 2)) | {
        on_deep[1]: linear(on_deep[2] * 2)
    }
    for cause in ("static", "top", "new", "changed", "unseen", "value", "given"):
        assert contrast(written.get(cause, colours["label"]), colours[cause]) >= 4.5, cause
