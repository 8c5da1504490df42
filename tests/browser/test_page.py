"""The HTML report in a browser: search, filter, open, sort, copy, link, print."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect


def shown(page: Page, selector: str) -> list[str]:
    """The texts of the elements that can be seen."""
    return [element.inner_text().strip() for element in page.locator(selector).all() if element.is_visible()]


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.textContent.trim()")


def test_it_begins_with_the_counts_and_the_manual_changes(open_page) -> None:
    page = open_page()
    assert (
        page.locator(".calls").inner_text()
        == "16 TensorFlow calls in 9 files: 5 fine, 8 rewritten, 3 need a manual change"
    )
    assert [text.split("\n") for text in shown(page, ".cards .card")] == [
        ["3", "manual changes"],
        ["1", "unreadable file"],
        ["8", "rewrites"],
        ["7", "files changed, of 10"],
        ["7", "APIs called"],
    ]
    heads = [text.split()[0] for text in shown(page, "main h2")]
    assert heads == ["Manual", "Unreadable", "Rewritten", "Files", "API"]


def test_the_cards_lead_to_the_sections(open_page) -> None:
    page = open_page()
    page.get_by_text("rewrites", exact=True).click()
    assert page.url.endswith("#rewritten")
    assert page.locator("#rewritten").bounding_box()["y"] < 200


# --- rules and files --------------------------------------------------------------


def test_a_finding_has_its_line_and_the_fix(open_page) -> None:
    page = open_page()
    item = page.locator("#manual-NPU230")
    assert not item.locator(".block").is_visible()
    item.locator("summary").first.click()
    assert "tf.where(condition, x, tf.zeros_like(x))" in item.locator(".block .piece").all_inner_texts()
    assert item.locator(".said a").all_inner_texts() == ["data/queues.py:4:9", "train.py:9:13"]
    assert item.locator(".said mark").all_inner_texts() == ["tf.where", "tf.where"]
    item.locator(".explanation summary").first.click()
    assert item.locator(".explanation pre").first.is_visible()


def test_a_place_leads_to_its_file(open_page) -> None:
    page = open_page()
    page.locator("#manual-NPU230 summary").first.click()
    page.locator("#manual-NPU230 .said a").first.click()
    expect(page.locator('[id="file-data/queues.py"]')).to_have_attribute("open", "")
    assert page.url.endswith("#file-data/queues.py")


def test_a_changed_file_has_both_sides(open_page) -> None:
    page = open_page("#file-train.py")
    rows = page.locator('[id="file-train.py"] .diff tr.replace')
    assert rows.locator("td.old").last.inner_text() == "with tf.Session() as sess:"
    assert rows.locator("td.new").last.inner_text() == "with tf.Session(config=npu_config_proto()) as sess:"
    assert rows.locator("ins").last.inner_text() == "config=npu_config_proto()"
    old, new = rows.locator("td.old").last.bounding_box(), rows.locator("td.new").last.bounding_box()
    assert old["y"] == new["y"] and old["x"] + old["width"] <= new["x"]


def test_one_side_can_be_selected_without_the_other(open_page) -> None:
    page = open_page("#file-train.py")
    rows = page.locator('[id="file-train.py"] .diff tr')
    start, end = (rows.nth(n).locator("td.new").bounding_box() for n in (1, 8))
    page.mouse.move(start["x"] + 2, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] - 5, end["y"] + end["height"] - 5)
    page.mouse.up()
    text = page.evaluate("getSelection().toString()")
    assert "npu_ops.dropout" in text and "tf.nn.dropout" not in text


@pytest.mark.parametrize(
    "anchor, line",
    [
        ("#file-bytes%20%FF.py", "tf.Session(config=npu_config_proto())"),
        ("#file-line%0Abreak.py", "tf.Session(config=npu_config_proto())"),
        ("#file-latin.py", 's = "\xe9"; tf.Session(config=npu_config_proto())'),
        ("#file-nb.ipynb", "tf.Session(config=npu_config_proto())"),
        (
            "#file-odd%20%22names%22/%3Cscript%3Ealert%281%29%3C.py",
            's = "</script><script>alert(1)</script>"; tf.Session(config=npu_config_proto())  # <b>&amp;',
        ),
    ],
    ids=["bytes that are no text", "a line break", "latin-1", "a notebook", "markup"],
)
def test_odd_files_can_be_linked_to_and_are_shown(anchor: str, line: str, open_page) -> None:
    page = open_page(anchor)
    assert line in page.locator("details[open] td.new").all_inner_texts()


# --- search and filters -----------------------------------------------------------


@pytest.mark.parametrize(
    "words, files",
    [
        ("queues", ["data/queues.py"]),
        ("WHERE train", ["train.py"]),
        ("npu230", ["data/queues.py", "train.py"]),
        ("print", ["python2.py"]),
        ("no such thing", []),
    ],
)
def test_search_leaves_what_has_all_words(words: str, files: list[str], open_page) -> None:
    page = open_page()
    page.locator("#search").fill(words)
    assert shown(page, ".file .title") == files
    assert (f"{len(files)} file") in page.locator("#shown").inner_text()


def test_the_sections_count_the_shown_items(open_page) -> None:
    page = open_page()
    whole = shown(page, "h2 .number")
    page.locator("#search").fill("queues")
    assert shown(page, "h2 .number") == ["2 of 3", "0 of 1", "0 of 8", "1 of 9", "3 of 7"]
    page.keyboard.press("Escape")
    assert shown(page, "h2 .number") == whole


def test_search_finds_apis_by_name_and_by_the_files_that_call_them(open_page) -> None:
    page = open_page()
    page.locator("#search").fill("train.batch")
    assert shown(page, ".expand") == ["tf.train.batch"]
    page.locator("#search").fill("plain.py")
    assert shown(page, ".expand") == ["tf.abs"]


def test_kinds_can_be_hidden(open_page) -> None:
    page = open_page()
    page.locator(".chip.change").click()
    assert page.locator(".chip.change").get_attribute("aria-pressed") == "false"
    assert shown(page, ".file .title") == ["data/queues.py", "python2.py", "train.py"]
    assert shown(page, "#rewritten .item") == []
    page.locator(".chip.change").click()
    assert len(shown(page, ".file .title")) == 9


def test_a_rule_can_be_chosen(open_page) -> None:
    page = open_page()
    page.locator("#rule").select_option("NPU106")
    assert shown(page, ".item .title") == ["Replace tf.nn.dropout with the NPU operator", "train.py"]
    assert shown(page, ".expand") == ["tf.nn.dropout"]


def test_the_address_holds_the_filters(open_page) -> None:
    page = open_page()
    page.locator("#search").fill("tf.where")
    page.locator("#rule").select_option("NPU230")
    page.locator(".chip.change").click()
    anchor = page.evaluate("location.hash")
    again = open_page(anchor)
    assert again.locator("#search").input_value() == "tf.where"
    assert again.locator("#rule").input_value() == "NPU230"
    assert again.locator(".chip.change").get_attribute("aria-pressed") == "false"
    assert shown(again, ".item .title") == shown(page, ".item .title") != []
    again.keyboard.press("Escape")
    assert again.evaluate("location.hash") == ""


def test_a_link_to_what_is_filtered_away_shows_it(open_page) -> None:
    page = open_page("#?q=queues")
    page.evaluate('location.hash = "#file-train.py"')
    expect(page.locator('[id="file-train.py"]')).to_be_visible()
    assert page.locator("#search").input_value() == ""


# --- APIs -------------------------------------------------------------------------


def test_the_table_has_what_is_called_and_how_far_it_is_supported(open_page) -> None:
    page = open_page()
    rows = [row.inner_text().replace("#", "").split() for row in page.locator(".apis tbody tr").all()]
    assert rows == [
        ["tf.where", "2", "2", "0", "0", "2", "with", "limits", "NPU230"],
        ["tf.train.batch", "1", "1", "0", "0", "1", "not", "supported", "NPU223"],
        ["tf.Session", "7", "7", "0", "7", "0", "after", "migration", "NPU101"],
        ["tf.nn.dropout", "1", "1", "0", "1", "0", "after", "migration", "NPU106"],
        ["tf.abs", "3", "3", "3", "0", "0", "supported"],
        ["tf.reduce_mean", "1", "1", "1", "0", "0", "supported"],
        ["tf.zeros", "1", "1", "1", "0", "0", "supported"],
    ]


def test_a_row_opens_to_its_places(open_page) -> None:
    page = open_page()
    opener = page.locator('[id="api-tensorflow.abs"] .expand')
    assert opener.get_attribute("aria-expanded") == "false"
    opener.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    spots = page.locator(".spots:visible")
    assert spots.locator("h3").all_inner_texts() == ["data/plain.py", "data/queues.py", "train.py"]
    assert spots.locator("li").all_inner_texts() == [
        "3\nx = tf.abs(-1)",
        "5\nz = tf.abs(x)",
        "5\nreturn tf.reduce_mean(tf.abs(y))",
    ]
    spots.get_by_role("link", name="train.py").click()
    expect(page.locator('[id="file-train.py"]')).to_have_attribute("open", "")
    opener.click()
    assert page.locator(".spots:visible").count() == 0


def test_a_row_can_be_linked_to(open_page) -> None:
    page = open_page("#api-tensorflow.where")
    assert page.locator(".spots:visible li.finding").count() == 2
    assert page.locator(".spots:visible p").inner_text() == (
        "with limits: runs on the NPU with limits; findings report where they matter. "
        "NPU230: tf.where with a condition only."
    )
    page.wait_for_function('document.activeElement.textContent === "tf.where"')


def test_the_table_can_be_sorted(open_page) -> None:
    page = open_page()
    calls = page.get_by_role("button", name="Calls")
    calls.click()
    head = page.locator("th", has=calls)
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [int(text) for text in page.locator(".apis tbody td:nth-child(2)").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    page.locator(".expand").first.click()
    page.get_by_role("button", name="API", exact=True).click()
    names = page.locator(".expand").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    opened = page.locator("tr", has=page.locator("[aria-expanded=true]"))
    assert opened.evaluate("row => row.nextElementSibling.className") == "spots"


def test_the_table_can_be_filtered_by_support(open_page) -> None:
    page = open_page()
    page.locator("#support").select_option(label="not supported")
    assert shown(page, ".expand") == ["tf.train.batch"]


# --- keyboard ---------------------------------------------------------------------


def test_the_keyboard_is_enough(open_page) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("queues")
    page.keyboard.press("Enter")
    assert "NPU223" in focused(page)
    page.keyboard.press("Enter")
    assert page.locator("#manual-NPU223 .block").is_visible()
    page.keyboard.press("j")
    assert "NPU230" in focused(page)
    page.keyboard.press("k")
    assert "NPU223" in focused(page)
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    page.keyboard.press("3")
    assert abs(page.locator("#files").bounding_box()["y"]) < 150
    page.keyboard.press("j")
    assert "bytes" in focused(page)
    page.keyboard.press("4")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.locator(".spots:visible").count() == 1


def test_keys_in_the_search_field_are_text_and_no_commands(open_page) -> None:
    page = open_page()
    page.locator("#search").click()
    page.keyboard.type("jo?/4")
    assert page.locator("#search").input_value() == "jo?/4"
    assert not page.locator("#keys").is_visible()


def test_all_can_be_opened_and_closed(open_page) -> None:
    page = open_page()
    page.keyboard.press("o")
    assert page.locator(".item:not([open])").count() == 0
    assert page.locator("#toggle").inner_text() == "Close all"
    page.locator("#toggle").click()
    assert page.locator(".item[open]").count() == 0


@pytest.mark.parametrize("how", ["key", "button"])
def test_the_keys_are_listed(how: str, open_page) -> None:
    page = open_page()
    if how == "key":
        page.keyboard.press("?")
    else:
        page.locator("#help").click()
    assert page.locator("#keys").is_visible()
    assert page.locator("#keys dt").first.inner_text() == "/"
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


# --- copying, printing, without script ---------------------------------------------


def test_code_in_a_message_is_copied(open_page) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#manual-NPU230 summary").first.click()
    page.locator("#manual-NPU230 .piece").first.press("Enter")
    expect(page.locator("#copied")).to_have_text("Copied: tf.where(condition, x, tf.zeros_like(x))")
    assert page.evaluate("navigator.clipboard.readText()") == "tf.where(condition, x, tf.zeros_like(x))"


def test_print_shows_all_that_is_not_filtered_away(open_page) -> None:
    page = open_page("#?q=queues")
    page.evaluate('window.dispatchEvent(new Event("beforeprint"))')
    page.emulate_media(media="print")
    assert page.locator("#manual-NPU230 .block").is_visible()
    assert not page.locator("#toolbar").is_visible() and not page.locator("#help").is_visible()
    page.evaluate('window.dispatchEvent(new Event("afterprint"))')
    assert page.locator(".item[open]").count() == 0


def test_without_script_all_is_there_but_the_places_of_apis(browser, report) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(report.as_uri())
    page.locator("#manual-NPU230 summary").first.click()
    assert page.locator("#manual-NPU230 .block").is_visible()
    assert page.locator(".apis tbody tr").count() == 7
    assert page.get_by_text("The places of the calls are in report.json.").is_visible()
