"""Make the site of a release beside those of others, with a switch between them: bash docs/build.sh release TAG.

The folder has a site for each version, ``versions.json``, which Material for MkDocs reads for its switch, and a page
that leads to the newest version. Copy it to any web server.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VERSIONS = "versions.json"
ROOT = pathlib.Path(__file__).resolve().parents[1]


def build(tag: str, out: pathlib.Path, root: pathlib.Path = ROOT) -> pathlib.Path:
    """Build the site of a tag, replace an older one of it, and return its folder.

    Args:
        tag: as in v1.2.3.
        out: the folder of all versions, made if it is missing.
        root: the checkout.
    Raises:
        SystemExit: the tag is missing or names no version, or mkdocs fails.
    """
    named = re.fullmatch(r"v(\d+(?:\.\d+)*)", tag)
    tags = subprocess.run(["git", "tag", "--list", tag], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout
    if named is None or not tags:
        raise SystemExit(
            f"docs/build.sh: there is no tag {tag} such as v1.2.3 in this checkout. Make it, or name another one."
        )
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="npu_shim_site_") as folder:
        source, site = pathlib.Path(folder, "source"), pathlib.Path(folder, "sites", named[1])
        source.mkdir()
        site.parent.mkdir()
        (site.parent / VERSIONS).write_text("[]\n", encoding="ascii")  # docs/site_hooks.py asks for it
        packed = subprocess.run(["git", "archive", tag], cwd=root, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=source, input=packed, check=True)
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
        path = os.pathsep.join(map(str, (source, source / "tools")))
        if subprocess.run(command, cwd=source, env={**os.environ, "PYTHONPATH": path}).returncode:
            raise SystemExit(f"docs/build.sh: mkdocs could not build the site of {tag}. See above.")
        shutil.rmtree(out / named[1], ignore_errors=True)
        shutil.copytree(site, out / named[1])
    write_versions(out)
    return out / named[1]


def write_versions(out: pathlib.Path) -> None:
    """Write the list of the versions in a folder, the newest first, and the page that leads to this one."""
    names = [path.name for path in out.iterdir() if path.is_dir() and re.fullmatch(r"\d+(\.\d+)*", path.name)]
    names.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    rows = [{"version": name, "title": name, "aliases": []} for name in names]
    (out / VERSIONS).write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")
    page = f'<!doctype html><title>npu_shim</title><meta http-equiv="refresh" content="0; url={names[0]}/index.html">\n'
    (out / "index.html").write_text(page, encoding="ascii")


if __name__ == "__main__":
    print(build(sys.argv[1], pathlib.Path(sys.argv[2])))
