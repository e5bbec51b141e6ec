"""How often a command collects garbage: cycles, which reference counts do not free, are rare in all it does."""

import gc

OBJECTS_OF_A_RUN = 500_000
"""Objects made and kept between two collections: more than a short run makes; a collection takes 0.1 s."""

OBJECTS_OF_A_SERVER = 50_000
"""The same where somebody waits for an answer meanwhile: a collection takes about 10 ms."""


def collect_seldom(objects: int) -> None:
    """Leave what is loaded out of later garbage collections; collect garbage after this number of new ``objects``.

    Objects are made by the thousand and stay, modules and states above all. With Python's own frequency, collections
    take a fifteenth of a short run and a third of a publication's time in a server.
    """
    gc.freeze()
    gc.set_threshold(objects, 20, 100)
