"""Self-contained page of an experiment's results: pictures, tables, and a glossary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from acquatop.lab.replay.setting import CLAIRVOYANT, can_win
from acquatop.lab.replay.summary import Cell, Improvement, ReplaySummary
from acquatop.lab.report.axes import View, place_text, views
from acquatop.lab.report.drawing import Picture
from acquatop.lab.report.html import html_table, part_of_page

_METRICS = {"ndcg": "nDCG", "precision": "precision", "ndcg_positional": "positional nDCG"}
_COSTS = {
    "fetches": "items asked for",
    "requests": "requests",
    "stale": "stale results",
    "age_seconds": "age in s",
    "rank_correlation": "rank correlation",
}
_WORDS = {
    "cumulated": "a metric, added up over all windows; the mean of the data sets. The small "
    "numbers below are within which it lies with a confidence of 95 %: a bootstrap that draws data "
    "sets, and blocks of windows in them.",
    "error": "what is missing of a metric to 1 in every window.",
    "nDCG": "the gain of the reported order, as a share of the best: of the K that are right the "
    "first is worth K, the last 1, all others nothing (the AcquaTop paper's definition).",
    "positional nDCG": "as the paper's authors compute it: whatever is right counts as much as "
    "the place at which it is reported, so swaps within the right answer cost nothing. The paper's "
    "Table 6 holds this one.",
    "precision": "the share of the K reported that are among the K that are right.",
    "stale results": (
        "the share of the reported whose score was not what it really was at that time."
    ),
    "rank correlation": (
        "Kendall's tau of the reported order: 1 if all pairs stand rightly, -1 if none does."
    ),
    "AT-, ANY- and WSJ-": "who proposes what may be refreshed: the list of candidates (AT), more "
    "of the window's best (ANY), or all that the window joins with (WSJ). The rest of a policy's "
    "name says in which order.",
    CLAIRVOYANT: "no policy: knows what stream and remote will bring, and spends each budget where "
    "it helps this answer and the next four most. So much is still possible at most, nearly.",
    "AT-ASM, WSJ-ASM": "refresh all that is proposed, whatever the budget: the most that can be "
    "had. WSJ-ASM "
    "fetches everything in every window, as an engine without policies would.",
}


def report(summary: ReplaySummary, pictures: Sequence[Picture]) -> str:
    """Return the page. It loads no other resources, and is the same for the same results."""
    sections = [
        ("pictures", "Pictures", "".join(map(_figure, pictures))),
        ("accuracy", "Accuracy", f'<div class="tables">{"".join(_accuracy(summary))}</div>'),
        ("improvements", "Improvements", _improvements(summary)),
        ("costs", "What it costs, and how fresh it is", "".join(_costs(summary))),
        ("data", "The data", _data(summary)),
        ("words", "What the words mean", _words()),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    bodies = "".join(
        f'<section id="{name}"><h2>{title}</h2>{body}</section>\n' for name, title, body in sections
    )
    run = summary.experiment
    style, script = (part_of_page(name) for name in ("report.css", "report.js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(run.title)}</h1>\n"
        f'<p class="lead">{escape(run.question)}</p>\n<nav>{links}</nav>\n'
        f"{_cards(summary)}{_toggles(run.policies)}{bodies}"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _toggles(policies: Sequence[str]) -> str:
    """Return boxes that show and hide policies, if there are several."""
    if len(policies) < 2:
        return ""
    boxes = (
        f'<label><input type="checkbox" checked data-toggles="{escape(each)}"> {escape(each)}'
        "</label>"
        for each in policies
    )
    return f'<fieldset class="toggles"><legend>Policies shown</legend>{"".join(boxes)}</fieldset>\n'


# Parts of the page --------------------------------------------------------------------------------


def _cards(summary: ReplaySummary) -> str:
    run = summary.experiment
    windows = summary.series(summary.cells[0], "ndcg").shape[1]
    cards = [
        (f"{len(run.policies)} policies", f"{len(summary.cells)} settings, {windows} windows each"),
        (
            f"{len(run.data) * len(run.seeds)} recordings"
            if len(run.data) * len(run.seeds) > 1
            else "1 recording",
            f"seeds {', '.join(map(str, run.seeds))}",
        ),
    ]
    for metric in ("ndcg", "precision"):
        best, share = _most_often_best(summary, metric)
        cards.append(
            (best, f"has the best {_METRICS[metric]} in {share} of the settings with a budget")
        )
    return (
        '<div class="cards">'
        + "".join(f'<div class="card"><b>{b}</b><span>{s}</span></div>' for b, s in cards)
        + "</div>\n"
    )


def _most_often_best(summary: ReplaySummary, metric: str) -> tuple[str, str]:
    """Return the policy with a budget that is best most often, and its share of all places."""
    places: dict[tuple[str, int, int, int], list[Cell]] = {}
    for cell in summary.cells:
        if can_win(cell.policy):
            places.setdefault((cell.data, cell.budget, cell.k, cell.n), []).append(cell)
    winners = [
        max(cells, key=lambda cell: summary.interval(cell, metric).mean).policy
        for cells in places.values()
    ]
    if not winners:
        return "none", "0 of 0"
    best = max(dict.fromkeys(winners), key=winners.count)
    return best, f"{winners.count(best)} of {len(winners)}"


def _figure(picture: Picture) -> str:
    caption = f"<b>{escape(picture.title)}.</b> {escape(picture.caption)}"
    return f"<figure>{picture.inline}<figcaption>{caption}</figcaption></figure>\n"


def _accuracy(summary: ReplaySummary) -> Iterator[str]:
    for view in views(summary.experiment):
        for metric, name in _METRICS.items():
            head = [f"{name}, cumulated", *(_head(view, text) for text in view.axis.texts())]
            yield html_table(
                head, _accuracy_rows(summary, view, metric), view.rest and f"At {view.rest}"
            )


def _accuracy_rows(summary: ReplaySummary, view: View, metric: str) -> Iterator[list[str]]:
    found = {
        policy: [summary.interval(view.cell(policy, value), metric) for value in view.axis.values]
        for policy in summary.experiment.policies
    }
    bests = (
        [
            max(
                each[at].mean
                for policy, each in found.items()
                if can_win(policy) or len(found) == 1
            )
            for at in range(len(view.axis.values))
        ]
        if any(can_win(policy) for policy in found)
        else []
    )
    windows = summary.series(summary.cells[0], metric).shape[1]
    for policy, each in found.items():
        row = [escape(policy)]
        for at, (mean, low, high) in enumerate(each):
            text = f"{windows * mean:.1f}<small>{windows * low:.1f}…{windows * high:.1f}</small>"
            is_best = bool(bests) and mean == bests[at] and can_win(policy)
            row.append(f'<td class="best">{text}</td>' if is_best else f"<td>{text}</td>")
        yield row


def _head(view: View, text: str) -> str:
    return f"{view.axis.name if view.axis.name != 'data' else view.axis.label} {text}"


def _improvements(summary: ReplaySummary) -> str:
    found = list(summary.improvements())
    if not found:
        return ""
    printed = any(each.printed for each in found)
    said = (
        "<p>How much more of the cumulated metric (the median over the data sets) a policy "
        "has than another: at best and at worst"
        f"{', and what the paper prints for its own data' if printed else ''}.</p>"
    )
    heads = ["", "metric", "at best", "at", "at worst", "at"]
    heads += ["paper, at best", "at worst"] if printed else []
    rows = [_improvement_row(summary, each, printed=printed) for each in found]
    return said + html_table(heads, rows, texts=(1, 3, 5))


def _improvement_row(summary: ReplaySummary, each: Improvement, *, printed: bool) -> list[str]:
    paper = each.printed
    of_paper = ["", ""] if paper is None else [f"{paper.most:+.2f} %", f"{paper.least:+.2f} %"]
    return [
        f"{escape(each.new)} against {escape(each.old)}",
        _METRICS[each.metric],
        f"{each.most:+.2f} %",
        place_text(summary.experiment, each.at_most) or "everywhere",
        f"{each.least:+.2f} %",
        place_text(summary.experiment, each.at_least) or "everywhere",
        *(of_paper if printed else []),
    ]


def _costs(summary: ReplaySummary) -> Iterator[str]:
    yield (
        "<p>On average per window; how many of all answers were called exact, certified or "
        "approximate.</p>"
    )
    for view in views(summary.experiment)[:1]:
        head = [
            "policy",
            _head(view, "").strip(),
            *_COSTS.values(),
            "exact",
            "certified",
            "approximate",
        ]
        yield html_table(head, _cost_rows(summary, view), view.rest and f"At {view.rest}")


def _cost_rows(summary: ReplaySummary, view: View) -> Iterator[list[str]]:
    for policy in summary.experiment.policies:
        for value, text in zip(view.axis.values, view.axis.texts(), strict=True):
            cell = view.cell(policy, value)
            means = [
                float(np.nanmean(summary.series(cell, name)))
                if _has(summary, cell, name)
                else np.nan
                for name in _COSTS
            ]
            numbers = ["" if np.isnan(mean) else f"{mean:.2f}" for mean in means]
            yield [
                escape(policy),
                text,
                *numbers,
                *(f"{count:,}" for count in summary.statuses(cell).values()),
            ]


def _has(summary: ReplaySummary, cell: Cell, name: str) -> bool:
    return not np.isnan(summary.series(cell, name)).all()


def _data(summary: ReplaySummary) -> str:
    rows = [
        [escape(place), escape(what), f"{count:,}"]
        for place, what, count in _notes(summary.results.notes)
    ]
    if not rows:
        return "<p>Nothing odd was found in the recordings.</p>"
    return "<p>What is odd in the recordings, and how often.</p>" + html_table(
        ["recording", "what", "how often"], rows, texts=(1,)
    )


def _notes(notes: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str, int]]:
    for place in sorted(notes):
        for what, count in notes[place].items():
            yield place, what, count


def _words() -> str:
    return (
        "<dl>"
        + "".join(
            f"<dt>{escape(word)}</dt><dd>{escape(said)}</dd>" for word, said in _WORDS.items()
        )
        + "</dl>"
    )
