"""Run the command that a command line names, and turn its errors into lines and exit statuses."""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence

from onceproof.cli import signals, terminal
from onceproof.cli.commands import BAD_INPUT, FAILED
from onceproof.cli.parser import parse
from onceproof.harness.base import foreign
from onceproof.harness.base.errors import BadInput, HarnessError


def dispatch(arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit status. Raises SystemExit after `--help` and for options that are refused."""
    signals.listen()
    options = None
    try:
        options = parse(arguments)
        with terminal.log_shown(quiet=getattr(options, "quiet", False)):
            return int(options.command(options))
    except BadInput as error:
        print(f"onceproof: {error}", file=sys.stderr)  # noqa: T201
        return BAD_INPUT
    except HarnessError as error:
        print(f"onceproof: {error}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        print("onceproof: interrupted; everything that it started has ended", file=sys.stderr)  # noqa: T201
        return signals.status()
    except BrokenPipeError:  # `onceproof list | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        if not _of_the_machine(error):
            traceback.print_exc()
        print(f"onceproof: {type(error).__name__}: {error}; `onceproof doctor` says what is missing", file=sys.stderr)  # noqa: T201
        return FAILED
    except BaseException as error:  # no command exits by itself, and a status 0 would say that all went well
        if options is None:  # after `--help`, and for options that are refused
            raise
        print(f"onceproof: ended by code of a file that it loaded: {BadInput(foreign.said(error))}", file=sys.stderr)  # noqa: T201
        return FAILED


def _of_the_machine(error: Exception) -> bool:
    """Whether the machine lacks something (an engine, disk space, a program), so that a traceback would not help."""
    return isinstance(error, OSError | subprocess.SubprocessError) or type(error).__module__.startswith("docker.")
