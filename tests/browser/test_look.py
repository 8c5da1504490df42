"""The look of the HTML report: on narrow screens, in the dark, and for users of keyboards and screen readers."""

from __future__ import annotations

import pytest

# The smallest contrast of any text that can be seen, with its colours, as WCAG 2 counts.
CONTRAST = """() => {
  const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = colour => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return Array.from(context.getImageData(0, 0, 1, 1).data);
  };
  const light = colour => {
    const [r, g, b] = colour.slice(0, 3).map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) { return colour; }
    }
    return [255, 255, 255, 255];
  };
  let worst = [21, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) { continue; }
    const a = light(rgb(getComputedStyle(element).color)), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) { worst = [ratio, element.className + ': ' + walker.currentNode.textContent]; }
  }
  return worst;
}"""
NAMELESS = """() => Array.from(document.querySelectorAll(
  'button, input, select, a, nav, dialog, section, [role=group], table')).filter(element => !(element.getAttribute('aria-label') || (element.getAttribute('aria-labelledby') || '').split(' ')
    .filter(Boolean).every(id => document.getElementById(id)) && element.hasAttribute('aria-labelledby') ||
    ['A', 'BUTTON'].includes(element.tagName) && element.textContent.trim() || element.caption))
  .map(element => element.outerHTML.slice(0, 100))"""


def opened(page):
    """The page with everything on it open."""
    page.keyboard.press("o")
    for summary in page.locator(".explanation > summary, .aside > summary, .untouched > summary").all():
        summary.click()
    for opener in page.locator(".expand").all():
        opener.click()
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(scheme: str, open_page) -> None:
    ratio, where = opened(open_page(scheme=scheme)).evaluate(CONTRAST)
    assert ratio >= 4.5, where


def test_light_and_dark_are_two(open_page) -> None:
    light, dark = (
        open_page(scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    )
    assert light != dark


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_nothing_is_wider_than_the_screen(width: int, open_page) -> None:
    page = opened(open_page(width=width))
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_narrow_screen_the_sides_are_one_above_the_other(open_page) -> None:
    page = open_page("#file-train.py", width=400)
    row = page.locator('[id="file-train.py"] .diff tr.replace').last
    old, new = row.locator("td.old").bounding_box(), row.locator("td.new").bounding_box()
    assert old["y"] + old["height"] <= new["y"] + 1 and abs(old["x"] - new["x"]) < 2
    assert row.locator("td.new").inner_text() == "with tf.Session(config=npu_config_proto()) as sess:"
    equal = page.locator('[id="file-train.py"] .diff tr.equal').first
    assert not equal.locator("td.old").is_visible() and equal.locator("td.new").is_visible()


def test_everything_has_a_name_to_be_read_aloud(open_page) -> None:
    assert opened(open_page()).evaluate(NAMELESS) == []


def test_ids_are_there_once(open_page) -> None:
    ids = open_page().evaluate('Array.from(document.querySelectorAll("[id]")).map(element => element.id)')
    assert len(ids) == len(set(ids))


def test_the_tab_key_goes_in_the_order_of_the_page(open_page) -> None:
    page = open_page()
    seen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        box = page.evaluate(
            "(({left, top}) => [Math.round((top + scrollY) / 30), left])("
            "document.activeElement.getBoundingClientRect())"
        )
        seen.append(box[0])
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert seen == sorted(seen)


def test_the_parts_of_the_page_are_landmarks(open_page) -> None:
    page = open_page()
    for role in ("banner", "main", "navigation", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("region").count() == 6
    assert page.get_by_role("columnheader").count() == 8
    assert page.locator("html").get_attribute("lang") == "en"
