"""The command line: all commands, and one line for each mistake."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from typing import NoReturn

from scaleproof import __version__
from scaleproof.commands import (
    calibrate,
    chakra,
    collect,
    compare,
    dilate,
    doctor,
    fit,
    init_suite,
    judge,
    kubernetes,
    list_suites,
    predict,
    preflight,
    profile,
    report,
    results,
    run,
    show,
    trace,
)
from scaleproof.spec.errors import SpecError

COMMANDS = {
    "doctor": doctor,
    "list": list_suites,
    "calibrate": calibrate,
    "profile": profile,
    "dilate": dilate,
    "preflight": preflight,
    "run": run,
    "kubernetes": kubernetes,
    "show": show,
    "trace": trace,
    "collect": collect,
    "fit": fit,
    "predict": predict,
    "chakra": chakra,
    "judge": judge,
    "report": report,
    "compare": compare,
    "results": results,
    "init": init_suite,
}
INTERRUPTED = 130
BROKEN_PIPE = 141
_MISTAKES = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOSPC,
    errno.EDQUOT,
)

EXAMPLES = """\
from nothing to a report:
  scaleproof doctor                                    what works on this machine, and what to do about the rest
  scaleproof calibrate                                 this machine's noise floors and bounds, in 3 quiet minutes
  scaleproof profile --workload vgg_a --batch 2        how long each layer takes here, for replay and simulation
  scaleproof dilate das2016 --size small               how much slower emulated clusters must run here
  scaleproof list                                      suites, their experiments and sizes
  scaleproof preflight das2016 throughput              names, pairs of ranks, ports, memory, clocks, speed
  scaleproof run das2016 throughput --dry-run          cases, launches, time and memory; writes nothing
  scaleproof run das2016 throughput --size smoke       run them; what is finished already is not run again
  scaleproof kubernetes das2016 throughput ...         the same over several nodes as an object for Kubernetes
  scaleproof collect das2016 throughput                one table of its launches
  scaleproof fit                                       alpha, beta and gamma of every transport, from suite micro
  scaleproof predict --workload vgg_a --fabric 25g     how training would scale on a cluster of yours, and what binds
  scaleproof chakra export 3f9a --out traces           a step as Chakra execution traces; `replay` simulates them
  scaleproof judge das2016                             verdicts from the records, without running anything
  scaleproof report das2016                            pages in reports/index.html
  scaleproof compare @arm:tcp @arm:gloo                by how much two arms, runs, commits or machines differ
  scaleproof results list status:failed                launches by conditions; also SQL, export, merge, prune
  scaleproof show 3f9a                                 one launch: status, failure, ranks, log, how to run it again
  scaleproof trace 3f9a -o trace.json                  that launch as a timeline of all ranks, for ui.perfetto.dev
  scaleproof init suite mine                           a suite of your own that runs as it is

`snakemake das2016` does run, collect, judge and report for a whole suite.
exit codes: 0 done; 1 some launch has no good record (compare: a regression); 2 a mistake in what was typed or in a
file; 75 nodes were lost and launches wait for them: start again; 130 interrupted"""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are one line."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(f"{self.prog}: {message}; see '{self.prog} --help'")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; imports nothing heavy."""
    parser = _Parser(
        prog="scaleproof",
        description="Turns claims about distributed deep learning into experiments and verdicts.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"scaleproof {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            help=command.HELP,
            description=command.__doc__,
            epilog=f"example:\n  {command.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.arguments(added)
        added.set_defaults(handler=command.main, parser=added)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        given = _parse(words)
        code: int = given.handler(given)
        sys.stdout.flush()
        return code
    except SpecError as mistake:
        return _say(str(mistake))
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else the interpreter's last flush fails once more
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _MISTAKES or error.filename is None:
            raise
        return _say(f"{error.filename}: {error.strerror}")


def _parse(words: list[str]) -> argparse.Namespace:
    """argparse, with the nearest name for a misspelt command or option."""
    from scaleproof.spec.registry import nearest

    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        raise SpecError(f"scaleproof: unknown command {words[0]!r}; {nearest(words[0], list(COMMANDS))}")
    given, rest = build_parser().parse_known_args(words)
    if not rest:
        return given
    options = [option for action in given.parser._actions for option in action.option_strings]
    advice = nearest(rest[0], options) if rest[0].startswith("-") else f"see '{given.parser.prog} --help'"
    raise SpecError(f"{given.parser.prog}: unknown argument {rest[0]!r}; {advice}")


def _say(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
