"""Make, check, show or convert rank tables: which rank runs on which device of which server.

The command reads every dialect: server_list (versions 1.0 and 1.2), rank_list (version 2.0 of the Ascend 950), and the
older forms of group_list.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from typing import Callable, Mapping, Sequence

from npu_shim._host import host_env, whole_file
from npu_shim._host.host_device import ASCEND_A5
from npu_shim.cli import RANKS, USAGE_ERROR, parser_of, print_output
from npu_shim.cli._lines import line_printer, print_error
from npu_shim.cli._paths import check_output_file
from npu_shim.cli._values import add_options
from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable import allocation, conversion, generate, hostfile, model, rootinfo, writer
from npu_shim.distributed.ranktable.products import BY_VERSION, PRODUCTS, dialect_of
from npu_shim.distributed.ranktable.reader import read_table, read_table_text, read_with_problems
from npu_shim.rehearsal.sections import table_lines

GROUP = RANKS
EXAMPLE = "npu-shim ranktable make --hosts 10.0.0.1:8,10.0.0.2:8 -o ranktable.json"

_COMMAND = "npu-shim ranktable"
_report = line_printer(_COMMAND)
PROBLEMS_FOUND = 1
_THIS_HOST = "127.0.0.1"
_CPU = "cpu"  # instead of a product: no device rules
_OF_MAKE = f"""
--hosts HOSTS  HOST:COUNT or HOST:FIRST-LAST of each host, such as 10.0.0.1:8,10.0.0.2:8; ranks are numbered in this
    order. Without a count the devices come from the hccn.conf of the host; by default this host alone
--hostfile FILE  the hosts from a file with lines such as 'host1 slots=8'
--slurm  the hosts and tasks of this Slurm allocation; srun reads the file with the devices on each host
--mpi  mpirun reads the file with the devices on each host, of --hosts, --hostfile, or its allocation
--hccn [HOST=]FILE  a copy of a host's {generate.HCCN_CONF} with the addresses of its devices, once per host; by default
    the file of this machine for the host that is this machine
--rootinfo [HOST=]FILE  the same for the Ascend 950: a copy of a host's {rootinfo.ROOT_INFO}
--product  the product of the hosts: A5 (Ascend 950) needs version 2.0, rank_list
--dialect  the dialect to write; by default server_list, for A5 rank_list
"""
_OF_CHECK = """
--product PRODUCT  the product whose rules apply: 910 (Atlas training servers), A2, A3, A5 (Ascend 950), or cpu for
    none; by default the one of the version: A5 for 2.0, A3 for 1.2, else 910
"""
_OF_CONVERT = """
--to  the dialect or version to write; by default server_list, for a rank_list rank_list
"""
_TO_WRITE = """
-o --output FILE  the file to write; by default standard output
--force  replace a file that differs
"""
_AS_JSON = """
--json  as JSON
"""


def main(arguments: list[str]) -> int:
    """Run make, check, show or convert.

    Args:
        arguments: the command and its arguments.
    Returns:
        0; 1 if ``check`` finds a problem; 2 for wrong usage, or a file that cannot be read, parsed or written.
    """
    args = _parser().parse_args(arguments)
    check_output_file("-o", getattr(args, "output", None))
    try:
        return args.run(args)
    except ValueError as error:
        return print_error(_COMMAND, str(error))


def _run_make(args: argparse.Namespace) -> int:
    dialect = args.dialect or dialect_of(args.product)
    if args.product is not None and (dialect == model.RANK_LIST) != (dialect_of(args.product) == model.RANK_LIST):
        needed = (
            f"Use --dialect {model.RANK_LIST}"
            if dialect != model.RANK_LIST
            else f"{model.RANK_LIST} is for {ASCEND_A5} only"
        )
        raise ValueError(f"--product {args.product} does not read --dialect {dialect}. {needed}.")
    source = generate.file_source(dialect)
    given = {"--hccn": args.hccn, "--rootinfo": args.rootinfo}
    for option, files in given.items():
        if files and option != source.option:
            raise ValueError(
                f"{option} is not for --dialect {dialect}. Pass each host's {source.path}: {source.option} HOST=FILE."
            )
    hosts, texts = _hosts_and_texts(args, source)
    devices = _devices_of_hosts(given[source.option] or [], [host.name for host in hosts], source, texts)
    table, placeholders = source.generate(hosts, devices)
    table, _ = conversion.convert_table(table, dialect)
    if placeholders:
        _report(
            f"the {source.facts} of {', '.join(placeholders)} are placeholders, which work on the CPU only. For NPUs "
            f"pass each host's {source.path}: {source.option} HOST=FILE."
        )
    return _print_or_write(table, args)


def _hosts_and_texts(
    args: argparse.Namespace, source: generate.Source
) -> tuple[Sequence[generate.Host], dict[str, str]]:
    """Return the hosts of the options, and the texts of their files if --slurm or --mpi gathers them."""
    given = [name for name in ("hosts", "hostfile") if getattr(args, name) is not None]
    if len(given) > 1 or (args.slurm and (given or args.mpi)):
        names = ["--" + name for name in (*(["slurm"] if args.slurm else []), *given, *(["mpi"] if args.mpi else []))]
        raise ValueError(f"{names[0]} and {names[1]} both name the hosts. Keep one.")
    hosts: Sequence[generate.Host] = ()
    if args.slurm:
        hosts = allocation.slurm_hosts(host_env.process_environ())
    elif args.hostfile is not None:
        hosts = hostfile.parse_hostfile(read_table_text(args.hostfile), args.hostfile)
    elif args.hosts is not None or not args.mpi:
        hosts = generate.parse_hosts(args.hosts if args.hosts is not None else _THIS_HOST)
    if args.slurm or args.mpi:
        return allocation.read_hosts_and_their_files(hosts, source.path, "srun" if args.slurm else "mpirun")
    return hosts, {}


def _devices_of_hosts(
    file_arguments: Sequence[str], names: Sequence[str], source: generate.Source, texts: Mapping[str, str]
) -> dict[str, Mapping[int, object]]:
    """Return the devices of the hosts whose files are passed as [HOST=]FILE, are on this machine, or were gathered."""
    option = source.option
    files: dict[str, str] = {}
    if os.path.exists(source.path) and not texts:
        files.update((name, source.path) for name in names if is_this_host(name))
    for one in file_arguments:
        name, _, path = one.rpartition("=")
        if not name and len(names) > 1:
            raise ValueError(f"{option} {one}: there are {len(names)} hosts. Name the host: {option} {names[0]}={one}.")
        name = name.strip("[]") or names[0]
        if name not in names:
            raise ValueError(f"{option} {one}: {name} is not one of the hosts {', '.join(names)}. Name one of --hosts.")
        files[name] = path
    for name, path in files.items():
        _report(f"using the devices of {name} from {path}.")
    gathered = {name: source.parse(text, f"{source.path} of {name}") for name, text in texts.items()}
    return {**gathered, **{name: source.parse(read_table_text(path), path) for name, path in files.items()}}


def _run_check(args: argparse.Namespace) -> int:
    table, problems = read_with_problems(read_table_text(args.file), None if args.product == _CPU else args.product)
    if args.json:
        listed = [dataclasses.asdict(problem) for problem in problems]
        return print_output(
            json.dumps({"file": args.file, "problems": listed}, indent=2), _exit_code_of_check(table, problems)
        )
    lines = [f"{args.file}: {problem.severity}: {problem}" for problem in problems]
    if not problems and table is not None:
        lines = [f"{args.file}: {_summary_text(table)}; no problems found"]
    return print_output("\n".join(lines), _exit_code_of_check(table, problems))


def _exit_code_of_check(table: model.RankTable | None, problems: Sequence[model.Problem]) -> int:
    if table is None and all(problem.path.startswith("line ") for problem in problems):
        return USAGE_ERROR  # not JSON
    return PROBLEMS_FOUND if problems else 0


def _run_show(args: argparse.Namespace) -> int:
    table = read_table(args.file)
    if args.json:
        return print_output(json.dumps(dataclasses.asdict(table), indent=2))
    address = "address" if table.dialect == model.RANK_LIST else "device_ip"
    rows = [("rank", "server", "device", address)] + [
        (str(device.rank), server.server_id, str(device.device_id), ",".join(device.addresses) or "-")
        for server, device in table.placements()
    ]
    return print_output("\n".join([f"{args.file}: {_summary_text(table)}", "", *table_lines(rows)]))


def _run_convert(args: argparse.Namespace) -> int:
    table, problems = read_with_problems(read_table_text(args.file))
    if table is None:
        raise model.RankTableError(args.file, model.only_errors(problems))
    target = args.to or (model.RANK_LIST if table.dialect == model.RANK_LIST else model.SERVER_LIST)
    converted, dropped = conversion.convert_table(table, target)
    if dropped:
        kind = "dialect" if target in model.DIALECTS else "version"
        _report(f"dropped {', '.join(dropped)}: the {kind} {target} has no such keys.")
    return _print_or_write(converted, args)


def _summary_text(table: model.RankTable) -> str:
    servers = len({server.server_id for server in table.servers})
    version = f" {table.version}" if table.version else ""
    counts = f"{model.count_text(table.size, 'rank')} on {model.count_text(servers, 'server')}"
    return f"{counts}, {table.dialect}{version}, {table.status}"


def _print_or_write(table: model.RankTable, args: argparse.Namespace) -> int:
    """Print a table, or write the whole file or nothing."""
    text = writer.table_text(table)
    if args.output is None:
        return print_output(text.rstrip("\n"))
    if os.path.exists(args.output) and not args.force and read_table_text(args.output) != text:
        return print_error(_COMMAND, f"{args.output} already exists and differs. Write another file, or use --force.")
    whole_file.write_atomically(text, args.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "ranktable",
        "Make, check, show or convert rank tables. Exit codes: 0 done; 1 check found a problem; 2 wrong "
        "usage or a file that cannot be read, parsed or written.",
    )
    verbs = parser.add_subparsers(dest="what", metavar="make|check|show|convert")
    verbs.required = True
    make = _add_verb(verbs, "make", _run_make, "write a rank table for hosts and their devices")
    files = {"action": "append"}
    dialects, products = {"choices": model.DIALECTS}, {"choices": PRODUCTS}
    add_options(make, _OF_MAKE + _TO_WRITE, hccn=files, rootinfo=files, product=products, dialect=dialects)
    check = _add_verb(verbs, "check", _run_check, "list the problems of a file, with path and fix")
    rules = {"choices": PRODUCTS + (_CPU,), "default": BY_VERSION}
    add_options(check, _OF_CHECK + _AS_JSON, product=rules)
    view = _add_verb(verbs, "show", _run_show, "list the ranks of a file")
    convert = _add_verb(
        verbs, "convert", _run_convert, "write a file in another dialect or version, without comments and commas"
    )
    for verb in (check, view, convert):
        own = host_env.process_environ().get("RANK_TABLE_FILE") or None
        verb.add_argument(
            "file", nargs="?" if own else None, default=own, help="a rank table; by default the file in RANK_TABLE_FILE"
        )
    add_options(view, _AS_JSON)
    add_options(convert, _OF_CONVERT + _TO_WRITE, to={"choices": conversion.TARGETS})
    return parser


def _add_verb(
    verbs: argparse._SubParsersAction, name: str, run: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + "."
    )
    parser.set_defaults(run=run)
    return parser
