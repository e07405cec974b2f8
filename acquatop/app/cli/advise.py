"""``acquatop advise``: find the cheapest policy, budget and N that reach a given accuracy."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.evaluate import (
    add_process_options,
    add_trace_options,
    check_policies,
    joined,
    of_trace,
    wholes,
)
from acquatop.app.cli.query_files import write_line
from acquatop.app.cli.replay_progress import telling

if TYPE_CHECKING:
    from acquatop.lab.replay.advice import Advice, AdvisedChoice

METRICS = ("precision", "ndcg", "ndcg_positional")
POLICIES = ("WSJ-LRU", "WSJ-WBM", "AT-LRU", "AT-TSM", "AT-BSM", "ANY-IMP")


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "advise", help="find the cheapest policy, budget and N for an accuracy that is wanted"
    )
    add_trace_options(parser, required=True)
    parser.add_argument(
        "--target", type=_target, required=True, metavar="METRIC=X", help="such as precision=0.95"
    )
    parser.add_argument(
        "--budgets", nargs="+", type=wholes, metavar="B", help="items to try (1 2 3 5 7 10 …)"
    )
    parser.add_argument(
        "-n", nargs="+", type=wholes, metavar="N", help="N to try (0, 1 and 3 times the query's K)"
    )
    parser.add_argument("--json", action="store_true", help="print the advice as JSON")
    add_process_options(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Try every setting, and print the advice."""
    from acquatop.lab.replay.advice import LADDER, advise

    policies = POLICIES if options.policies is None else joined(options.policies)
    check_policies(policies)
    experiment = of_trace(options.trace, options.query)
    (k,) = experiment.ks
    experiment = replace(
        experiment,
        policies=policies,
        budgets=LADDER if options.budgets is None else joined(options.budgets),
        ns=(0, k, 3 * k) if options.n is None else joined(options.n),
    )
    with TemporaryDirectory(prefix="acquatop-") as scratch, telling() as told:
        metric, target = options.target
        advice = advise(
            experiment, metric, target, Path(scratch), processes=options.processes, told=told
        )
    write_line(
        json.dumps(asdict(advice) | _intervals(advice))
        if options.json
        else "\n".join(_lines(advice))
    )


def _target(text: str) -> tuple[str, float]:
    metric, _, value = text.partition("=")
    try:
        target = float(value)
    except ValueError:
        target = -1.0
    if metric not in METRICS or not 0 < target <= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not {', '.join(METRICS)}, and a number up to 1: precision=0.95"
        )
    return metric, target


def _intervals(advice: Advice) -> dict[str, Any]:
    """Return the confidence intervals of the advice as JSON objects (they are tuples there)."""
    choices = {name: getattr(advice, name) for name in ("choice", "next_step", "best")}
    found = {
        name: None if each is None else asdict(each) | {"metric": each.metric._asdict()}
        for name, each in choices.items()
    }
    return {**found, "ceiling": advice.ceiling._asdict()}


def _lines(advice: Advice) -> list[str]:
    lines = [f"{advice.metric} of {advice.target:g} or more, with a confidence of 95 %:"]
    if advice.choice is None:
        lines += [
            "  nothing that was tried reaches it",
            f"  the best is {_said(advice, advice.best)}",
        ]
    else:
        lines.append(f"  {_said(advice, advice.choice)}")
    if advice.choice is not None and advice.next_step is not None:
        gain = advice.next_step.metric.mean - advice.choice.metric.mean
        more = advice.next_step.budget - advice.choice.budget
        lines.append(f"the next step up, {more} items more, would buy {gain:+.3f}:")
        lines.append(f"  {_said(advice, advice.next_step)}")
    mean, low, high = advice.ceiling
    lines.append(
        f"fetching everything in every window: {advice.metric} {mean:.3f} ({low:.3f} to {high:.3f})"
    )
    return lines


def _said(advice: Advice, choice: AdvisedChoice) -> str:
    mean, low, high = choice.metric
    return (
        f"{choice.policy}, {choice.budget} items per evaluation, N = {choice.n}: "
        f"{advice.metric} {mean:.3f} ({low:.3f} to {high:.3f}), {choice.requests:.1f} requests"
    )
