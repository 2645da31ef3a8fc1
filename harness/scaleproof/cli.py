"""The command line: all commands. Every error is one line."""

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
    fields,
    fit,
    goal,
    import_log,
    init_suite,
    judge,
    kubernetes,
    list_suites,
    pipeline,
    plan,
    predict,
    preflight,
    profile,
    report,
    results,
    run,
    show,
    trace,
    trees,
    tune,
)
from scaleproof.commands.common import LaterHelp
from scaleproof.spec.errors import SpecError

COMMANDS = {
    "doctor": doctor,
    "list": list_suites,
    "fields": fields,
    "calibrate": calibrate,
    "profile": profile,
    "dilate": dilate,
    "preflight": preflight,
    "tune": tune,
    "run": run,
    "kubernetes": kubernetes,
    "show": show,
    "trace": trace,
    "collect": collect,
    "fit": fit,
    "predict": predict,
    "pipeline": pipeline,
    "plan": plan,
    "trees": trees,
    "chakra": chakra,
    "goal": goal,
    "import": import_log,
    "judge": judge,
    "report": report,
    "compare": compare,
    "results": results,
    "init": init_suite,
}
INTERRUPTED = 130
BROKEN_PIPE = 141
_USER_ERRORS = (
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
  scaleproof fields strategy                           what a suite file may say: fields, options, their meaning
  scaleproof tune easgd2015 --size smoke               each arm's values on the grid of an experiment's `tune`
  scaleproof preflight das2016 throughput              names, pairs of ranks, ports, memory, clocks, speed
  scaleproof run das2016 throughput --dry-run          cases, launches, time and memory; writes nothing
  scaleproof run das2016 throughput --size smoke       run them; what is finished already is not run again
  scaleproof kubernetes das2016 throughput ...         the same over several nodes as an object for Kubernetes
  scaleproof collect das2016 throughput                one table of its launches
  scaleproof fit                                       alpha, beta and gamma of every transport, from suite micro
  scaleproof predict --workload vgg_a --fabric 25g     how training would scale on your cluster, and what limits it
  scaleproof pipeline --stages 8 --micro-batches 32    schedules of pipelines side by side: time, gaps, activations
  scaleproof plan --workload bert48 --batch 64 ...     memory against time of all ways to divide a network
  scaleproof trees 'dgx1v_like[0,2,3,4,7]'             packed spanning trees on direct links, beside rings
  scaleproof chakra export 3f9a --out traces           a step as Chakra execution traces; `replay` simulates them
  scaleproof goal replay a.goal --fabric 10g           simulate a graph of computing and messages of your own
  scaleproof import nccl-tests a.log --machine p5      a log of NCCL's collectives beside the prediction for its machine
  scaleproof judge das2016                             verdicts from the records, without running anything
  scaleproof report das2016                            pages in reports/index.html
  scaleproof compare @arm:tcp @arm:gloo                by how much two arms, runs, commits or machines differ
  scaleproof results list status:failed                launches by conditions; also SQL, export, merge, prune
  scaleproof show 3f9a                                 one launch: status, failure, ranks, log, how to run it again
  scaleproof trace 3f9a -o trace.json                  that launch as a timeline of all ranks, for ui.perfetto.dev
  scaleproof init suite mine                           a suite of your own that runs as it is

`snakemake das2016` does run, collect, judge and report for a whole suite.
exit codes: 0 done; 1 some launch has no good record (compare: a regression); 2 an error in the command line or in a
file; 75 nodes were lost and launches wait for them: start again; 130 interrupted"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose texts may be made when it is printed."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if not isinstance(action.help, LaterHelp):
            return action.help
        return action.help.text() + ("" if action.default in (None, "") else " (default: %(default)s)")


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(f"{self.prog}: {message}; see '{self.prog} --help'")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands. It imports no large library, so that --help is fast."""
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
            formatter_class=_Help,
            allow_abbrev=False,
        )
        command.arguments(added)
        added.set_defaults(handler=command.main, parser=added)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        options = _parse(sys.argv[1:] if argv is None else argv)
        code: int = options.handler(options)
        sys.stdout.flush()
        return code
    except SpecError as error:
        return _print_error(str(error))
    except BrokenPipeError:
        # Otherwise the interpreter's last flush fails too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _USER_ERRORS or error.filename is None:
            raise
        return _print_error(f"{error.filename}: {error.strerror}")


def _parse(argv: list[str]) -> argparse.Namespace:
    """Parse the command line; SpecError with the nearest name for an unknown command or option."""
    from scaleproof.spec.registry import nearest

    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        raise SpecError(f"scaleproof: unknown command {argv[0]!r}; {nearest(argv[0], list(COMMANDS))}")
    options, unknown = build_parser().parse_known_args(argv)
    if not unknown:
        return options
    names = [name for action in options.parser._actions for name in action.option_strings]
    advice = nearest(unknown[0], names) if unknown[0].startswith("-") else f"see '{options.parser.prog} --help'"
    raise SpecError(f"{options.parser.prog}: unknown argument {unknown[0]!r}; {advice}")


def _print_error(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
