"""The command line: ``python -m lethe_lib run | verify | leaderboard | audit-edges | chapters | findings | bench | book``.

Each takes ``--help``.
"""

import argparse
import sys
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
    "findings": ("reporting.findings", "write the main findings, from published records, into README.md"),
    "book": ("study.book", "execute every chapter and build the HTML book"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed, 2 a usage that cannot be understood."""
    prepare_environment()
    parser = argparse.ArgumentParser(prog="python -m lethe_lib", description="Privacy in graph neural networks.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    arguments = sys.argv[1:] if argv is None else argv
    for name, (module_name, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if arguments[:1] == [name]:
            module = import_module(f"lethe_lib.{module_name}")
            module.add_arguments(command)
    parsed = parser.parse_args(arguments)
    try:
        return module.main(parsed)
    except LetheError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
