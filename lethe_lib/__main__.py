"""The command line: ``python -m lethe_lib run | verify | leaderboard | audit-edges | chapters | findings | bench | book``.

Each takes ``--help``.
"""

import argparse
import errno
import sys
import traceback
from importlib import import_module

from lethe_lib.environment import prepare_environment
from lethe_lib.errors import LetheError

# Command -> (module of the library, summary). A module has add_arguments(parser) and main(arguments) -> exit status, and is
# imported only when asked for.
COMMANDS = {
    "run": ("study.run_study", "run experiments and keep one record for each"),
    "verify": ("study.verify", "recompute a sample of the published records and compare"),
    "leaderboard": ("study.leaderboard", "print the leaderboard, with your own unlearner in it"),
    "chapters": ("study.chapters", "list chapters, or execute them with your parameters"),
    "bench": ("study.bench", "measure speed ratios side by side"),
    "audit-edges": (
        "study.audit_edges",
        "measure how much an unlearner, yours too, still remembers of forgotten edges",
    ),
    "findings": (
        "reporting.findings",
        "write the main findings, from published records, into README.md and the introduction",
    ),
    "book": ("study.book", "execute every chapter and build the HTML book"),
}

UNWRITABLE = ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EISDIR", "ENOTDIR", "EEXIST", "ENAMETOOLONG")
"""Names of errors of a place that cannot be written, or not as it is; other errors of files are faults of the library."""
INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed, 2 a usage that cannot be understood, 130 interrupted."""
    try:
        return command(argv)
    except KeyboardInterrupt:
        print("\ninterrupted: what is finished is kept; run the same command again to go on", file=sys.stderr)
        return INTERRUPTED


def command(argv: list[str] | None) -> int:
    """As :func:`main`, but that an interrupt is not caught."""
    prepare_environment()
    parser = argparse.ArgumentParser(prog="python -m lethe_lib", description="Privacy in graph neural networks.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    arguments = sys.argv[1:] if argv is None else argv
    for name, (module_name, summary) in COMMANDS.items():
        options = commands.add_parser(name, help=summary, description=summary)
        if arguments[:1] == [name]:
            module = import_module(f"lethe_lib.{module_name}")
            module.add_arguments(options)
    parsed = parser.parse_args(arguments)
    try:
        return module.main(parsed)
    except LetheError as error:
        return failed(str(error))
    except SystemExit as leaving:  # no command leaves like this, so code of the user did, in the middle of a run
        frame = traceback.extract_tb(leaving.__traceback__)[-1]
        return failed(f"{frame.filename}, line {frame.lineno}, called exit: let the method return (model, StepLog)")
    except OSError as error:
        if errno.errorcode.get(error.errno) not in UNWRITABLE:
            raise
        place = error.filename2 or error.filename
        where = f"{place}: " if place else ""
        return failed(
            f"{where}{error.strerror}: choose a place that can be written, or make room or change its permissions"
        )


def failed(message: str) -> int:
    """Print an error that the user can mend; returns the exit status."""
    print(f"error: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
