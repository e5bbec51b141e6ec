"""A headless Chromium for pages, where there is one."""

import re
import shutil
import subprocess
from pathlib import Path

from peers import missing

OFF = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'
"""What forbids scripts to a page."""

MEASURE = """<script>addEventListener("load", function () {
  document.querySelectorAll("details").forEach(function (it) { it.open = true; });
  var cut = [].filter.call(document.querySelectorAll("svg, table, .bar"), function (it) {
    return it.getBoundingClientRect().right > it.parentNode.getBoundingClientRect().right + 1;
  });
  document.title = cut.length + " cut, ground " + getComputedStyle(document.body).backgroundColor;
});</script>"""
"""Says in the title of a page how many of its charts and tables are wider than their places."""

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)


def dumped(page: Path, folder: Path, *, fragment: str = "") -> tuple[str, list[str]]:
    """Return what ``page`` is once it has loaded, and what it told the console; skips without a browser."""
    return visited(f"{page.as_uri()}{fragment}", folder)


def visited(url: str, folder: Path) -> tuple[str, list[str]]:
    """Return what the page at ``url`` is once it has loaded, and what it told the console; skips without a browser."""
    command = [chromium(), *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", url]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        missing("Chromium does not answer here")
    if not ended.stdout:
        missing(f"Chromium does not start here: {ended.stderr[-200:]}")
    return ended.stdout, re.findall(r"CONSOLE.*", ended.stderr)


def cut_on_paper(text: str, folder: Path) -> tuple[str, str]:
    """Return what of a page is cut, and its ground: on a screen as wide as A4 without margins, 186 mm, and on paper.

    The rules for print are taken for all media.
    """
    file, told = folder / "paper.html", []
    narrow = text.replace("<main>", '<main style="width:703px">').replace("</body>", f"{MEASURE}</body>")
    narrow = narrow.replace("script-src 'none'", "script-src 'unsafe-inline'")
    for media in ("@media print", "@media all"):
        file.write_text(narrow.replace("@media print", media))
        told.append(dumped(file, folder)[0].split("<title>")[1].split("<")[0])
    return told[0], told[1]


def chromium() -> str:
    """Return the browser's program; skips without one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for it in names if (found := shutil.which(it))), None) or missing("no Chromium here")


def without_scripts(page: Path) -> Path:
    """Return a copy of ``page`` in which no script may run."""
    copy = page.with_name("without-scripts.html")
    copy.write_text(page.read_text().replace("<head>", f"<head>{OFF}", 1))
    return copy
