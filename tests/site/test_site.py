"""The documentation as a site: built without a warning, readable without a network, in light and dark."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import pathlib
import re
import subprocess
import sys
import threading
from typing import Iterator

import pytest
from playwright.sync_api import Browser, Page, TimeoutError


def build(checkout: pathlib.Path, folder: pathlib.Path, *arguments: str) -> tuple[int, str]:
    """Build the site and return exit code and output."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), *arguments],
        cwd=str(checkout),
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.decode()


@pytest.fixture(scope="module")
def site(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("site")
    code, output = build(repo_root, folder)
    assert code == 0 and "WARNING" not in output, output
    return folder


def test_the_site_has_the_generated_pages_and_images(site: pathlib.Path) -> None:
    assert "NPU247" in (site / "rules" / "index.html").read_text(encoding="utf-8")
    page = (site / "api" / "npu_shim.data.html").read_text(encoding="utf-8")
    assert 'id="padded_batches"' in page and "Raises" in page
    for image in ("report.png", "verify.png"):
        assert (site / "images" / image).read_bytes().startswith(b"\x89PNG")
    assert '<a href="rules/NPU106.html">NPU106</a>' in (site / "migrate-tf1.html").read_text(encoding="utf-8")
    assert 'href="distributed.html' in (site / "zh" / "migrate-tf1.html").read_text(encoding="utf-8")


def test_each_page_has_its_language_and_a_switch_to_the_other_one(site: pathlib.Path) -> None:
    for name, language, english, chinese in (
        ("launch.html", "en", "launch.html", "zh/launch.html"),
        ("zh/launch.html", "zh", "../launch.html", "launch.html"),
        ("index.html", "en", "index.html", "zh/index.html"),
        ("zh/index.html", "zh", "../index.html", "index.html"),
        ("rules/NPU101.html", "en", "../index.html", "../zh/index.html"),  # a page without a translation
    ):
        page = (site / name).read_text(encoding="utf-8")
        assert f'<html lang="{language}"' in page
        switch = re.findall(r'<a href="(.*?)" hreflang="(\w+)" class="md-select__link">', page)
        assert switch == [(english, "en"), (chinese, "zh")], name


def test_the_menu_has_the_pages_of_one_language_in_one_order(site: pathlib.Path) -> None:
    menus = {}
    for language, folder in (("en", site), ("zh", site / "zh")):
        page = (folder / "start.html").read_text(encoding="utf-8")
        links = re.findall(r'<a href="([^"#]+)" class="md-nav__link', page.split("md-sidebar--secondary")[0])
        menus[language] = list(dict.fromkeys(links))
    assert len(menus["zh"]) > 20 and all("/" not in link for link in menus["zh"])
    assert not any(link.startswith("zh/") for link in menus["en"])
    assert [link for link in menus["en"] if link in menus["zh"]] == menus["zh"]


def test_a_used_port_is_one_line(repo_root: pathlib.Path, address: str) -> None:
    port = address.rstrip("/").rpartition(":")[2]
    command = ["bash", str(repo_root / "docs" / "build.sh"), "serve", port]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1
    assert done.stdout == (
        f"docs/build.sh: port {port} is not free. Name another one, as in: bash docs/build.sh serve 8001\n"
    )


@pytest.fixture(scope="module")
def address(site: pathlib.Path) -> Iterator[str]:
    """The address of a server of the site on this machine."""
    with serving(site) as address:
        yield address


@contextlib.contextmanager
def serving(folder: pathlib.Path) -> Iterator[str]:
    """Yield the address of a server of a folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def search(page: Page) -> None:
    """Search for a name on a page, and assert that it is found."""
    query, results = page.locator("[data-md-component=search-query]"), page.locator(".md-search-result__item")
    for _ in range(30):  # what is typed while the search starts is lost at times
        query.fill("")
        query.fill("padded_batches")
        with contextlib.suppress(TimeoutError):
            results.first.wait_for(state="attached", timeout=5_000)
            break
    assert results.count()


def test_pages_need_no_network_follow_the_color_scheme_and_are_found(address: str, browser: Browser) -> None:
    wrong: list[str] = []
    for scheme, background in (("light", 200), ("dark", 0)):
        page = browser.new_page(color_scheme=scheme)
        page.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        for name in ("index.html", "migrate-tf1.html", "zh/start.html"):
            page.goto(address + name)
            color = page.evaluate("getComputedStyle(document.body).backgroundColor")
            light = [float(part) for part in color.strip("rgba()").split(",")[:3]]
            assert background <= min(light) and max(light) < background + 60, (name, color)
            assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), name
        if scheme == "light":
            search(page)
        page.close()
    assert wrong == []


@pytest.mark.nightly
def test_the_site_of_a_tag_has_a_switch_between_versions(
    repo_root: pathlib.Path, tmp_path: pathlib.Path, browser: Browser
) -> None:
    checkout, out = tmp_path / "checkout", tmp_path / "versions"
    checkout.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo_root, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["xargs", "-0", "cp", "--parents", "-t", str(checkout)], cwd=repo_root, input=listed, check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"], ["tag", "v0.10.0"]):
        subprocess.run(["git", *who, *arguments], cwd=checkout, check=True)
    for name in ("0.9.0", "0.10.0"):  # the second one is replaced
        (out / name).mkdir(parents=True)
        (out / name / "index.html").write_text("")
    command = [sys.executable, str(checkout / "docs" / "site_versions.py")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    wrong = subprocess.run([*command, "v7", str(out)], cwd=checkout, stderr=subprocess.PIPE, text=True)
    assert wrong.returncode == 1 and "there is no tag v7" in wrong.stderr and "Traceback" not in wrong.stderr
    subprocess.run([*command, "v0.10.0", str(out)], cwd=checkout, env=environment, check=True)
    assert "url=0.10.0/index.html" in (out / "index.html").read_text()
    with serving(out) as address:
        page = browser.new_page()
        page.goto(address + "0.10.0/zh/start.html")
        page.locator(".md-version__current").wait_for(state="attached", timeout=60_000)
        assert page.locator(".md-version__current").inner_text().strip() == "0.10.0"
        links = page.locator(".md-version__link").evaluate_all("links => links.map(link => link.href)")
        assert [link.split("/")[3] for link in links] == ["0.10.0", "0.9.0"]
        page.close()


@pytest.mark.nightly
def test_broken_links_fail_the_build(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for path in repo_root.iterdir():
        if path.name not in ("docs", "mkdocs.yml", "build"):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "mkdocs.yml").write_text((repo_root / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    for path in (repo_root / "docs").iterdir():
        if path.name != "start.md":
            (tmp_path / "docs" / path.name).symlink_to(path)
    broken = "# Start\n\n[a](../no_such_file.py) [b](no-such-page.md) [c](launch.md#no-such-heading)\n"
    (tmp_path / "docs" / "start.md").write_text(broken, encoding="utf-8")
    code, output = build(tmp_path, tmp_path / "site")
    assert code == 1 and "in strict mode" in output
    for problem in (
        "../no_such_file.py leads to no file",
        "'no-such-page.md', but the target is not found",
        "'#no-such-heading'",
    ):
        assert problem in output, output
