"""How two patterns stand to each other: whether one covers the other, and whether they share a topic.

Law: both look at every topic there could be, not at those that exist. A wildcard has a fixed number of components, a
prefix has not, so no wildcard covers a prefix.
"""

from relaycast_gateway.matching.topics import Match, TopicPattern


def covers(wide: TopicPattern, narrow: TopicPattern) -> bool:
    """Return whether ``wide`` selects every topic that ``narrow`` selects.

    >>> covers(TopicPattern("com.", Match.PREFIX), TopicPattern("com.shop..price", Match.WILDCARD))
    True
    >>> covers(TopicPattern("com.shop"), TopicPattern("com.shop", Match.PREFIX))
    False
    """
    if narrow.match is Match.EXACT:
        return wide.matches(narrow.uri)
    if narrow.match is Match.WILDCARD and "" not in narrow.uri.split("."):
        return wide.matches(narrow.uri)
    if wide.match is Match.PREFIX:
        return _fixed_head(narrow).startswith(wide.uri)
    if wide.match is Match.WILDCARD and narrow.match is Match.WILDCARD:
        mine, its = wide.uri.split("."), narrow.uri.split(".")
        return len(mine) == len(its) and all(part in ("", other) for part, other in zip(mine, its, strict=True))
    return False


def overlap(one: TopicPattern, other: TopicPattern) -> bool:
    """Return whether some topic is selected by both.

    >>> overlap(TopicPattern("com.shop", Match.PREFIX), TopicPattern("com..price", Match.WILDCARD))
    True
    """
    if one.match is Match.EXACT:
        return other.matches(one.uri)
    if other.match is Match.EXACT:
        return one.matches(other.uri)
    if one.match is Match.PREFIX and other.match is Match.PREFIX:
        return one.uri.startswith(other.uri) or other.uri.startswith(one.uri)
    if one.match is Match.WILDCARD and other.match is Match.WILDCARD:
        mine, its = one.uri.split("."), other.uri.split(".")
        return len(mine) == len(its) and all(
            left == right or "" in (left, right) for left, right in zip(mine, its, strict=True)
        )
    prefix, wildcard = (one, other) if one.match is Match.PREFIX else (other, one)
    return _prefix_meets_wildcard(prefix.uri.split("."), wildcard.uri.split("."))


def _fixed_head(pattern: TopicPattern) -> str:
    """Return the text with which every topic of ``pattern`` begins."""
    if pattern.match is Match.PREFIX:
        return pattern.uri
    head: list[str] = []
    for part in pattern.uri.split("."):
        if not part:
            return "".join(f"{known}." for known in head)
        head.append(part)
    return pattern.uri


def _prefix_meets_wildcard(prefix: list[str], wildcard: list[str]) -> bool:
    *whole, begun = prefix
    if len(prefix) > len(wildcard):
        return False
    if any(part not in ("", known) for known, part in zip(whole, wildcard, strict=False)):
        return False
    last = wildcard[len(whole)]
    return last == "" or last.startswith(begun)
