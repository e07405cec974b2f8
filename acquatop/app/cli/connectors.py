"""``acquatop connectors``: list the connectors of streams, and their options."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import write_line
from acquatop.errors import UserError

if TYPE_CHECKING:
    from connectors.option import Option
    from connectors.registry import Connector


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "connectors", help="list what streams can be read with, and what can be set"
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a connector; without any, all of them"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per connector")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the connectors' descriptions; refuse an unknown name, with the nearest known one."""
    from acquatop.plugins import CONNECTORS
    from rspql.diagnostics import nearest

    for name in options.names:
        if name not in CONNECTORS:
            near = nearest(name, CONNECTORS)
            hint = f'did you mean "{near}"?' if near else f"there are {', '.join(CONNECTORS)}"
            raise UserError(f'there is no connector "{name}"\n  hint: {hint}')
    for name in options.names or CONNECTORS:
        try:
            connector = CONNECTORS[name]
        except UserError as error:
            if options.names:
                raise
            sys.stderr.write(f"acquatop: {error}\n")
            continue
        if options.json:
            write_line(json.dumps(connector.to_json(), ensure_ascii=False))
        else:
            for line in _shown(connector):
                write_line(line)


def _shown(connector: Connector) -> Iterator[str]:
    yield f"{connector.name}: {connector.summary}"
    yield f"  formats: {', '.join(connector.formats)}"
    yield f"  guarantee: {connector.guarantee}"
    width = max(map(len, connector.options), default=0)
    for name, option in connector.options.items():
        yield f"  {name:<{width}}  {option.meaning} ({_value(option)})"
    yield ""


def _value(option: Option) -> str:
    """Return the values that an option accepts, as text."""
    kind = " or ".join(f'"{each}"' for each in option.choices) or str(option.kind)
    if option.implied:
        return f"{kind}; in a catalog it follows from the mapping"
    if option.required:
        return f"{kind}, required"
    return f"{kind}; {option.default} unless given" if option.default else kind
