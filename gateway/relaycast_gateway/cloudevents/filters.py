"""Filters of subscriptions: ``filter``, one object, or ``filters``, an array of which all must hold.

```text
filter  = {} | { dialect: content }
exact, prefix, suffix = { attribute: text }     the attribute's text is, starts with, ends with the text
all, any = [ filter, ... ]                      at least one; evaluated in the order listed, no further than necessary
not     = filter                                the inverse
sql     = text                                  an expression of CloudEvents SQL that must be true without an error
```

An attribute that is absent, or ``null``, makes ``exact``, ``prefix`` and ``suffix`` false, and so their ``not`` true.
One that is no text counts by its canonical text: ``true``, ``5``, RFC 3339 in UTC. Upper and lower case differ. No
filter, ``{}`` and ``[]`` select every event; inside another filter ``{}`` and ``null`` are errors. An attribute's name
is made of lower-case letters and digits, as in CloudEvents; ``data`` is none.

Bounds: filters 32 deep and 256 in all. Source: CloudEvents Subscriptions API 0.1-wip, 3.2.3; ``filters`` and several
attributes in one object (``multi_attribute``) are of later versions.
"""

from collections.abc import Mapping, Sequence

from relaycast_gateway.cloudevents.dialects import AttributesPredicate, DialectBook, FilterCode, shown
from relaycast_gateway.cloudevents.invalid_member import InvalidMember

BUILT_IN = DialectBook()


def compile_filter(
    given: Mapping[str, object] | Sequence[object],
    *,
    dialects: DialectBook = BUILT_IN,
    multi_attribute: bool = False,
) -> AttributesPredicate:
    """Return the predicate over an event's attributes that ``filter`` (an object) or ``filters`` (an array) stands for.

    ``InvalidMember`` names the member that is wrong, such as ``filter.all[1].exact``.
    """
    code = FilterCode(dialects, multi_attribute)
    if isinstance(given, Mapping):
        return code.compiled(code.filter(given, "filter") if given else "True")
    if not isinstance(given, list | tuple):
        raise InvalidMember("filter", shown(given), "an object with one dialect, or an array of such objects")
    written = [code.filter(each, f"filters[{place}]") for place, each in enumerate(given)]
    return code.compiled(" and ".join(written) or "True")
