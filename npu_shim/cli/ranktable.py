"""Make, check, show or convert rank tables: which rank runs on which device of which server.

Every dialect is read: server_list, and the older forms of group_list.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from typing import Sequence

from npu_shim.cli import USAGE_ERROR, show
from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable import generate as ranktable_make, model as ranktable, writer as ranktable_write
from npu_shim.distributed.ranktable.model import DIALECTS, SERVER_LIST, Problem, RankTable, RankTableError, counted
from npu_shim.distributed.ranktable.validate import ATLAS_910, PRODUCTS, examine

FOUND = 1
_ANY = "cpu"  # in place of a product: no cards, so none of their rules


def main(arguments: list[str]) -> int:
    """Does one of make, check, show, convert.

    Args:
        arguments: which of them, and its own.
    Returns:
        0; 1 where ``check`` found something; 2 for wrong usage, or files that cannot be read, parsed or written.
    """
    args = _parser().parse_args(arguments)
    try:
        return args.run(args)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except ValueError as error:
        return _fail(str(error))


def _make(args: argparse.Namespace) -> int:
    hosts = ranktable_make.parse_hosts(args.hosts)
    names = [host.name for host in hosts]
    addresses = _addresses(args.hccn or [], names)
    table, made_up = ranktable_make.make(hosts, addresses)
    table, _ = ranktable_write.converted(table, args.dialect)
    if made_up:
        _tell(
            f"the device_ip of {', '.join(made_up)} are made up, which is enough without cards. With cards give each "
            f"host's {ranktable_make.HCCN_CONF}: --hccn HOST=FILE."
        )
    return _put(table, args)


def _addresses(given: Sequence[str], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """The addresses of the devices of those hosts whose hccn.conf is named, or is here."""
    files: dict[str, str] = {}
    if os.path.exists(ranktable_make.HCCN_CONF):
        files.update((name, ranktable_make.HCCN_CONF) for name in names if is_this_host(name))
    for one in given:
        name, _, path = one.rpartition("=")
        if not name and len(names) > 1:
            raise ValueError(f"--hccn {one}: there are {len(names)} hosts; say whose it is: --hccn {names[0]}={one}.")
        name = name.strip("[]") or names[0]
        if name not in names:
            raise ValueError(f"--hccn {one}: {name} is none of the hosts {', '.join(names)}. Name one of --hosts.")
        files[name] = path
    for name, path in files.items():
        _tell(f"the devices of {name} are those of {path}.")
    return {name: ranktable_make.read_hccn(ranktable.text_of(path), path) for name, path in files.items()}


def _check(args: argparse.Namespace) -> int:
    table, problems = examine(ranktable.text_of(args.file), None if args.product == _ANY else args.product)
    if args.json:
        listed = [dataclasses.asdict(problem) for problem in problems]
        return show(json.dumps({"file": args.file, "problems": listed}, indent=2), _code(table, problems))
    lines = [f"{args.file}: {problem.severity}: {problem}" for problem in problems]
    if not problems and table is not None:
        lines = [f"{args.file}: {_summary(table)}; nothing to say against it"]
    return show("\n".join(lines), _code(table, problems))


def _code(table: RankTable | None, problems: Sequence[Problem]) -> int:
    if table is None and all(problem.path.startswith("line ") for problem in problems):
        return USAGE_ERROR  # no JSON at all
    return FOUND if problems else 0


def _show(args: argparse.Namespace) -> int:
    table = ranktable.read(args.file)
    if args.json:
        return show(json.dumps(dataclasses.asdict(table), indent=2))
    rows = [("rank", "server", "device", "device_ip")] + [
        (str(device.rank), server.server_id, str(device.device_id), device.device_ip or "-")
        for server, device in table.placements()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return show("\n".join([f"{args.file}: {_summary(table)}", ""] + lines))


def _convert(args: argparse.Namespace) -> int:
    table, problems = examine(ranktable.text_of(args.file))
    if table is None:
        raise RankTableError(args.file, ranktable.errors(iter(problems)))
    made, left_out = ranktable_write.converted(table, args.to)
    if left_out:
        _tell(f"the dialect {args.to} has no {', '.join(left_out)}; left out.")
    return _put(made, args)


def _summary(table: RankTable) -> str:
    servers = len({server.server_id for server in table.servers})
    version = f" {table.version}" if table.version else ""
    return f"{counted(table.size, 'rank')} on {counted(servers, 'server')}, {table.dialect}{version}, {table.status}"


def _put(table: RankTable, args: argparse.Namespace) -> int:
    """Prints a table, or writes it: the whole file or nothing."""
    text = ranktable_write.text(table)
    if args.output is None:
        return show(text.rstrip("\n"))
    if os.path.exists(args.output) and not args.force and ranktable.text_of(args.output) != text:
        return _fail(f"{args.output} is there already and differs. Write another file, or use --force.")
    ranktable_write.write(text, args.output)
    return 0


def _fail(text: str) -> int:
    print(f"npu-shim ranktable: error: {text}", file=sys.stderr)
    return USAGE_ERROR


def _tell(text: str) -> None:
    print(f"npu-shim ranktable: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="npu-shim ranktable",
        allow_abbrev=False,
        description="Makes, checks, shows or converts rank tables. Exit codes: 0 done; 1 check found something; 2 "
        "wrong usage, or a file that cannot be read, parsed or written.",
    )
    verbs = made.add_subparsers(dest="what", metavar="make|check|show|convert")
    verbs.required = True
    form = "the form to write; server_list by default"
    make = _verb(verbs, "make", _make, "write a table for hosts and their devices")
    make.add_argument(
        "--hosts",
        default="127.0.0.1",
        help="HOST:COUNT or HOST:FIRST-LAST of each host, as in "
        "10.0.0.1:8,10.0.0.2:8; ranks are numbered in this order. Without a count, or without --hosts "
        "for this host alone, the devices are those of its hccn.conf",
    )
    make.add_argument(
        "--hccn",
        action="append",
        metavar="[HOST=]FILE",
        help="a copy of a host's "
        f"{ranktable_make.HCCN_CONF}, which has the addresses of its devices; may be given for each "
        "host. By default this machine's, for the host that is this machine",
    )
    make.add_argument("--dialect", choices=DIALECTS, default=SERVER_LIST, help=form)
    check = _verb(verbs, "check", _check, "find what is wrong in a file, with its place and what to write")
    check.add_argument(
        "--product",
        choices=PRODUCTS + (_ANY,),
        default=ATLAS_910,
        help="whose rules for the devices "
        "of a server count: Atlas training servers (910, by default), A2, A3, or cpu for none",
    )
    view = _verb(verbs, "show", _show, "list the ranks of a file")
    convert = _verb(verbs, "convert", _convert, "write a file in another form, without comments and stray commas")
    for verb in (check, view, convert):
        own = os.environ.get("RANK_TABLE_FILE") or None
        verb.add_argument(
            "file",
            nargs="?" if own else None,
            default=own,
            help="a rank table; by default the one that RANK_TABLE_FILE names",
        )
    for verb in (check, view):
        verb.add_argument("--json", action="store_true", help="as JSON")
    convert.add_argument("--to", choices=DIALECTS, default=SERVER_LIST, help=form)
    for verb in (make, convert):
        verb.add_argument("-o", "--output", metavar="FILE", help="where to write; by default standard output")
        verb.add_argument("--force", action="store_true", help="replace a file that differs")
    return made


def _verb(verbs: argparse._SubParsersAction, name: str, run: object, what: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = verbs.add_parser(
        name, help=what, description=what[0].upper() + what[1:] + ".", allow_abbrev=False
    )
    made.set_defaults(run=run)
    return made
