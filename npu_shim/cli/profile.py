"""Read a profile: what a step waits for, which bottlenecks it has, and how to fix them.

With two profiles it says what became faster or slower.
"""

from __future__ import annotations

import argparse
import pathlib

from npu_shim.cli import NUMBERS, parser_of, print_output
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_folder, check_output_file

GROUP = NUMBERS
EXAMPLE = "npu-shim profile prof --html profile.html"


def main(arguments: list[str]) -> int:
    """Report on a profile, or compare two.

    Args:
        arguments: one or two folders, and options.
    Returns:
        0, or 1 if the step of the second profile is slower, or 2 if there is nothing to read.
    """
    parser = _parser()
    args = parser.parse_args(arguments)
    for folder in filter(None, (args.folder, args.new, *args.graph)):
        check_folder(folder, "Give the folder of a profile.")
    check_output_file("--json", args.json)
    check_output_file("--html", args.html)
    if args.new and (args.html or args.rank_by_gain or args.product or args.against):
        parser.error("--html, --rank-by-gain, --product and --against are for one profile. Give one folder")
    from npu_shim.profiles import profile_reader, profile_reports, profile_summary
    from npu_shim.profiles.expected import read_prediction
    from npu_shim.profiles.pages import SLOWER, ProfileChanges, ProfilePage
    from npu_shim.rehearsal.assess.products import parse_product
    from npu_shim.rehearsal.reports import to_json

    try:
        profiled = profile_reader.read_profile(
            args.folder,
            args.graph,
            parse_product(args.product) if args.product else None,
            read_prediction(args.against) if args.against else None,
        )
        shown: ProfilePage | ProfileChanges
        if args.new:
            shown = profile_summary.compare_profiles(
                profiled, profile_reader.read_profile(args.new, args.graph), (args.folder, args.new)
            )
        else:
            shown = profile_summary.to_page(profiled, args.folder, args.rank_by_gain)
        if args.json:
            pathlib.Path(args.json).write_text(to_json(shown.to_json()), encoding="utf-8")
        if args.html and isinstance(shown, ProfilePage):
            pathlib.Path(args.html).write_text(profile_reports.to_html(shown), encoding="utf-8")
    except ValueError as error:
        return print_error("npu-shim profile", str(error))
    slower = isinstance(shown, ProfileChanges) and shown.step.verdict == SLOWER
    return print_output(profile_reports.to_text(shown).rstrip("\n"), int(slower))


def _parser() -> argparse.ArgumentParser:
    about = "Reads exports of the profiler: what a step waits for, how to fix it. Exit code 1: NEW has slower steps."
    parser = parser_of("profile", about)
    parser.add_argument("folder", metavar="DIR", help="folder of a profile (npu-shim run --profile DIR, msprof)")
    parser.add_argument("new", metavar="NEW", nargs="?", help="folder of a second profile, compared with the first")
    parser.add_argument("--json", metavar="FILE", help="write the whole result to FILE")
    parser.add_argument("--html", metavar="FILE", help="write a page with a timeline of a typical step to FILE")
    parser.add_argument("--rank-by-gain", action="store_true", help="rank findings by what a fix gains at most")
    parser.add_argument("--product", metavar="NAME", help="ascend910, atlas-a3 or TFLOPS,GB/s: bounds as in assess")
    against = "JSON of npu-shim assess --predict: which ops take longer than predicted"
    parser.add_argument("--against", metavar="PREDICTION", help=against)
    lines = "folder that knows the lines of ops: graph files, a profile of the CPU, or the JSON of npu-shim assess"
    parser.add_argument("--graph", action="append", default=[], metavar="DIR", help=lines)
    return parser
