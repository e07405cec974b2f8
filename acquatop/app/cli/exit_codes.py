"""Translation of errors into messages and exit codes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def guarded(work: Callable[[], int | None], *, debug: bool) -> int:
    """Run some work and return the exit code; an error becomes one message on the standard error.

    The code is what the work returns, if anything. 0: done, or ended by Ctrl-C or SIGTERM; 1: the
    environment's fault; 2: the user's. An error with an ``exit_code`` has a message for users. Any
    other error is a defect.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    # rdflib logs a traceback for every literal that is malformed for its datatype. Such literals
    # are kept as they are.
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    logging.basicConfig(
        format="acquatop: %(message)s", level=logging.WARNING, handlers=[MessageHandler()]
    )
    try:
        code = work() or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        # The reader of the output has gone. Discard the rest of the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            print(f"acquatop: {_message(error)}", file=sys.stderr)  # noqa: T201
        return _exit_code(error)


class MessageHandler(logging.Handler):
    """Log handler that prints to the current standard error.

    A live table replaces ``sys.stderr`` while it is shown.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record.

        When Spark's Java ends, Py4J logs a traceback for each call that is under way, some of them
        under no name of its own. Whoever has called is told.
        """
        if Path(record.pathname).parent.name == "py4j":
            return
        try:
            print(self.format(record), file=sys.stderr)  # noqa: T201
        except Exception:
            self.handleError(record)


def _exit_code(error: Exception) -> int:
    code = getattr(error, "exit_code", 1)
    return code if isinstance(code, int) else 1


def _message(error: Exception) -> str:
    if hasattr(error, "exit_code"):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return (
        f"unexpected {type(error).__name__}: {error}\n  hint: run it again with --debug and "
        f"report what it prints"
    )


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt
