"""YAML without its traps: no anchors, no tags that make objects, and no repeated name."""

from typing import Any

import yaml

from relaycast.refusal import BadInput, one_line, shown


class _StrictLoader(yaml.SafeLoader):
    """Raises ``YAMLError`` for what a scenario has no use for."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "a reference to an anchor, expected the value itself", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            name = self.construct_object(key_node, deep=True)
            if not isinstance(name, str) or name in seen:
                problem = f"the name {shown(name)} {'twice' if isinstance(name, str) else 'that is no text'}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, place: str) -> Any:
    """Return the value that ``text`` holds; ``place`` is where it comes from."""
    try:
        return yaml.load(text, _StrictLoader)  # noqa: S506 - a SafeLoader underneath
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{place} line {mark.line + 1} column {mark.column + 1}" if mark else place
        raise BadInput(where, one_line(error.problem or "text that is not YAML"), "strict YAML") from None
    except yaml.YAMLError as error:
        raise BadInput(place, one_line(str(error)), "strict YAML") from None
    except RecursionError:
        raise BadInput(place, "values nested too deeply", "YAML at most a few hundred levels deep") from None
