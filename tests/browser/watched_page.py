"""A page with what it requested and complained about, and the contrast of its texts."""

from __future__ import annotations

from playwright.sync_api import Page

TIMEOUT_MS = 10_000
CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [.2126, .7152, .0722][place], 0);
  const behind = (part) => {
    for (; part; part = part.parentElement) {
      const c = rgb(getComputedStyle(part).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
  };
  const poor = [];
  for (const part of document.querySelectorAll("main *:not(svg *):not(svg)")) {
    const text = [...part.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !part.offsetParent) continue;
    const [a, b] = [light(rgb(getComputedStyle(part).color)), light(behind(part))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) poor.push(part.outerHTML.slice(0, 120));
  }
  return poor;
}"""


class Watched:
    """A page and everything that it asked for or complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
