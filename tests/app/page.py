"""Pages as tests look at them: well-formed, self-contained, every element by its name."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "line"}
"""Elements without an end."""


@dataclass(slots=True)
class Element:
    """One element with its attributes, and the text up to its first child."""

    name: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """Parses strictly: an end that does not match its start, or an attribute that comes twice, is an error."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag}: an attribute comes twice in {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/>"
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open[-1].name == tag, f"</{tag}> ends <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].text += data

    def named(self, name: str, **attributes: str) -> list[Element]:
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [it for it in self.elements if it.name == name and wanted.items() <= it.attributes.items()]


def parsed(text: str) -> Page:
    """Return the page; raises ``AssertionError`` where it is not well-formed or could load anything."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert text.startswith("<!doctype html>")
    ids = [it.attributes["id"] for it in page.elements if "id" in it.attributes]
    assert len(ids) == len(set(ids))
    for it in page.elements:
        assert it.name not in {"link", "iframe", "img", "object", "embed", "base"}
        assert not it.attributes.keys() & {"src", "srcset", "action", "onclick", "oninput"}
        assert it.attributes.get("href", "#").startswith("#")
        assert "url(" not in it.attributes.get("style", "")
    assert all("url(" not in it.text and "@import" not in it.text for it in page.named("style"))
    targets = {it.attributes["href"][1:] for it in page.named("a")}
    assert targets <= set(ids)
    return page
