"""Plots as SVG that stands in a page: of the page's own colours, so that it can be read on light and on dark ground."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenure.model_checks.reports.errors import needed

INK: Final = "#010203"
"""Stands for the colour of the page's text while a plot is made."""
COLOURS: Final = ("#3b82f6", "#e8730c", "#1fa05a", "#d6429a", "#8b6cf0", "#b08a00")
"""Told apart on either ground."""
FAINT: Final = "#8a8f98"
NAMED_MAX: Final = len(COLOURS)
WIDTH, HEIGHT = 9.6, 3.6
SPARK_WIDTH, SPARK_HEIGHT = 90, 18

_STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tenure",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def pyplot() -> Any:
    """Matplotlib, without a screen.

    Raises:
        MissingExtraError: it is not installed.
    """
    needed("matplotlib", "a plot").use("svg")
    return needed("matplotlib.pyplot", "a plot")


def frontier_plot(per_depth: Mapping[str, Sequence[int]]) -> str:
    """How many states are first met at each depth, a curve for each scope; the largest scopes by name.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plt = pyplot()
    largest = sorted(per_depth, key=lambda name: -sum(per_depth[name]))[:NAMED_MAX]
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
        for name in sorted(per_depth, key=lambda name: name in largest):
            is_named = name in largest
            colour = COLOURS[largest.index(name)] if is_named else FAINT
            label = name.split("/", 1)[1] if is_named else None
            width, opacity = (1.7, 1.0) if is_named else (0.7, 0.5)
            counts = per_depth[name]
            axes.plot(range(len(counts)), counts, color=colour, linewidth=width, alpha=opacity, label=label)
        axes.set_yscale("log")
        axes.set_xlabel("depth (events from the first state)")
        axes.set_ylabel("states first met there")
        axes.grid(visible=True, color=FAINT, alpha=0.25, linewidth=0.5)
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, title="largest scopes", alignment="left"
        )
        return svg_of(plt, figure)


def svg_of(plt: Any, figure: Any) -> str:
    """The figure as an SVG element, in the colours of the page."""
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"|<svg ', r'<svg role="img" \1', svg, count=1)


def spark(counts: Sequence[int]) -> str:
    """The growth of a frontier as a line as high as text."""
    if len(counts) < 2:
        return ""
    top = max(counts)
    step = SPARK_WIDTH / (len(counts) - 1)
    points = " ".join(
        f"{place * step:.1f},{SPARK_HEIGHT - 1 - (SPARK_HEIGHT - 2) * count / top:.1f}"
        for place, count in enumerate(counts)
    )
    return (
        f'<svg class="spark" width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}" role="img" '
        f'aria-label="frontier by depth, at most {top}"><polyline points="{points}"/></svg>'
    )
