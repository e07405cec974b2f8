"""Walks of an event and of a refresh through the rooms.

Data for the test that follows them, and for their picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape


class Step(NamedTuple):
    """A function on a walk, with its room and its work in a few words."""

    room: str
    function: str
    work: str


EVENT = (
    Step("connectors", "LinesReader.read", "read the partition"),
    Step("connectors", "JsonMapping.named", "decode to columns"),
    Step("ingest", "Matcher.find", "match the pattern"),
    Step("ingest", "Solutions.reduce", "leave out the replaced"),
    Step("engine", "StreamDriver.take", "take the batch"),
    Step("query", "TopKEvaluation.add", "take the part"),
    Step("query", "OneWindow.note", "note its panes"),
    Step("query", "Buffered.add", "wait for the pane"),
    Step("ingest", "Matcher.table", "make their terms"),
    Step("query", "TopKEvaluation.advance", "the watermark moves"),
    Step("query", "Schedule.due", "a window closes"),
    Step("query", "TopKN.add_pane", "score the pane"),
    Step("topk", "PaneDominance.add", "keep candidates"),
    Step("query", "TopKEvaluation._inquire", "refresh the remote"),
    Step("query", "TopKN.apply_changes", "rescore changed keys"),
    Step("topk", "PaneDominance.top", "take the best k"),
    Step("answer", "Rendering.bindings", "render the rows"),
    Step("query", "certify", "certify"),
    Step("answer", "Assembly.answer", "put the answer together"),
    Step("answer", "RelationToStream.__call__", "make it a stream"),
    Step("engine", "Delivery.deliver", "deliver to sinks and readers"),
)
REFRESH = (
    Step("refresh", "ReplicaRefresh.begin", "begin the evaluation"),
    Step("replica", "Maintainer.begin", "store pushed changes"),
    Step("query", "TopKN.wanted", "name the keys wanted"),
    Step("refresh", "ReplicaRefresh.offer", "collect the keys"),
    Step("refresh", "SuperMTKNProposer.propose", "propose"),
    Step("refresh", "RefreshOrder.__call__", "rank"),
    Step("refresh", "Allocation.order", "choose for all queries due"),
    Step("replica", "Maintainer.ask", "spend the budget"),
    Step("replica", "Account.take", "pay from the budget"),
    Step("replica", "Quota.take", "pay from the limits"),
    Step("replica", "Maintainer._send", "send, in a thread"),
    Step("replica", "ReplicaStore.put", "store the reply"),
)
WALKS = {"An event": EVENT, "A refresh": REFRESH}

_WIDTH, _ROW, _HEAD, _LEFT = 640, 26, 34, 110


def table(steps: Sequence[Step]) -> str:
    """Return a walk as a Markdown table."""
    rows = [f"| {step.room} | `{step.function}` | {step.work} |" for step in steps]
    return "\n".join(["| room | function | work |", "|---|---|---|", *rows])


def picture() -> str:
    """Return both walks as an SVG picture: a band per stay in a room, a line per function."""
    parts, y = [], 0
    for title, steps in WALKS.items():
        parts.append(_text(8, y + 22, title, "font-weight='bold'"))
        y += _HEAD
        for number, (room, stay) in enumerate(groupby(steps, key=lambda step: step.room)):
            several = list(stay)
            height = _ROW * len(several)
            fill = ("#eef3f8", "#dbe6f0")[number % 2]
            parts.append(f"<rect x='0' y='{y}' width='{_WIDTH}' height='{height}' fill='{fill}'/>")
            parts.append(_text(8, y + 18, room, "fill='#345'"))
            for at, step in enumerate(several):
                line = y + _ROW * at + 18
                parts.append(_text(_LEFT, line, step.work))
                parts.append(
                    _text(_LEFT + 220, line, step.function, "font-family='monospace' fill='#555'")
                )
            y += height
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {y}' "
        "font-family='sans-serif'"
    )
    ground = f"<rect width='{_WIDTH}' height='{y}' fill='white'/>"
    return "\n".join([f"{head} font-size='13'>", ground, *parts, "</svg>\n"])


def _text(x: int, y: int, text: str, style: str = "") -> str:
    return f"<text x='{x}' y='{y}' {style}>{escape(text)}</text>"
