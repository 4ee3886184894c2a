"""What all pictures of the report share: frames, scales, an axis of times, and numbers in few characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TypeVar

from acep_approx.budget.ledger import Piece
from acep_approx.diagrams.text_layout import label
from acep_approx.timeline.picture import LEFT, RIGHT, WIDTH, axis_ticks
from acep_approx.visible import escape

MOST_PIECES = 240
Item = TypeVar("Item")


def picture(parts: Iterable[str], *, width: float, height: float, name: str, title: str, description: str) -> str:
    """An ``<svg>`` element that says in words what it shows.

    Parameters
    ----------
    parts : iterable of str
        What is in it; already escaped.
    width, height : float
        Its size; it grows and shrinks with the page.
    name : str
        Letters only; unlike that of any other picture of the page.
    title, description : str
        For those who cannot see it; plain text.

    Returns
    -------
    str
    """
    head = (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
    )
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    return "\n".join((head, words, *parts, "</svg>"))


def table(head: list[str], rows: list[list[str]], *, caption: str, texts: int = 1) -> str:
    """An HTML table.

    Parameters
    ----------
    head : list of str
        Names of the columns; plain text.
    rows : list of list of str
        Plain text.
    caption : str
        What the table holds; plain text.
    texts : int
        The first so many columns are texts, to the left; the others are numbers, to the right.

    Returns
    -------
    str
    """

    def cells(tag: str, row: list[str]) -> str:
        kinds = ["" if i < texts else ' class="n"' for i in range(len(row))]
        scope = ' scope="col"' if tag == "th" else ""
        return "".join(f"<{tag}{scope}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    top = f"<caption>{escape(caption)}</caption>\n<thead><tr>{cells('th', head)}</tr></thead>"
    return f'<div class="scroll"><table>{top}\n<tbody>\n{body}\n</tbody></table></div>'


@dataclass(frozen=True)
class Panel:
    """A strip of a picture: its place, and its scale.

    Attributes
    ----------
    top, height : float
        Where it lies.
    marks : list of float
        Values with a line, from 0 on; the last one lies at the top.
    """

    top: float
    height: float
    marks: list[float]

    def y(self, value: float) -> float:
        """Place of a value."""
        return self.top + self.height * (1 - value / self.marks[-1])

    def frame(self, title: str) -> Iterator[str]:
        """Title and grid."""
        yield label(LEFT, self.top - 10, title, kind="head")
        for value in self.marks:
            y = self.y(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield label(LEFT - 8, y + 4, short(value), anchor="end")


def cut(text: str, most: int) -> str:
    """A text in at most so many characters.

    Examples
    --------
    >>> cut("departure", 6), cut("dep", 6)
    ('depar…', 'dep')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def steps(top: float, most: int) -> list[float]:
    """Round numbers from 0 to ``top`` or just above, for an axis: at most ``most`` equal steps.

    Examples
    --------
    >>> steps(7, 4), steps(0.3, 3), steps(0, 3)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 0.1, 0.2, 0.3], [0.0, 1.0])
    """
    if top <= 0:
        return [0.0, 1.0]
    power = floor(log10(top / most))
    sizes = ((factor, power + up) for up in (0, 1) for factor in (1, 2, 5))
    factor, power = next(size for size in sizes if size[0] * 10.0 ** size[1] * most >= top * (1 - 1e-9))
    width = factor * 10.0**power
    count = max(1, ceil(top / width - 1e-8))
    return [round(i * width, max(0, 2 - power)) for i in range(count + 1)]


def short(number: float) -> str:
    """A number in few characters.

    Examples
    --------
    >>> [short(n) for n in (0, 0.125, 12, 1_500, 24_000, 3_200_000, 7e12)]
    ['0', '0.125', '12', '1,500', '24k', '3.2M', '7,000G']
    """
    if abs(number) < 10_000:
        return f"{number:,.0f}" if number == round(number) else f"{number:.3g}"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            scaled = number / size
            return f"{scaled:,.0f}{unit}" if abs(scaled) >= 100 or scaled == round(scaled) else f"{scaled:.3g}{unit}"
    raise AssertionError(number)


def percent(share: float) -> str:
    """A share as people read it: never rounded to all or nothing.

    Examples
    --------
    >>> [percent(s) for s in (0, 0.0004, 0.123, 0.98765, 0.9999, 1)]
    ['0%', '0.04%', '12.3%', '98.8%', '99.99%', '100%']
    """
    for digits in (1, 2, 3):
        text = f"{100 * share:.{digits}f}"
        if share in (0, 1) or 0 < float(text) < 100:
            return f"{text.rstrip('0').rstrip('.')}%"
    return "below 0.001%" if share < 0.5 else "above 99.999%"


def legend(x: float, y: float, meanings: Iterable[tuple[str, str]], step: float) -> Iterator[str]:
    """What lines mean, side by side: each as a line of its kind, and its text."""
    for number, (kind, text) in enumerate(meanings):
        left = x + number * step
        yield f'<path class="{kind}" d="M{left:.1f} {y:.1f}h22"/>' + label(left + 28, y + 4, text)


def thinned(items: Sequence[Item], most: int) -> list[Item]:
    """At most ``most`` items at equal distances, the last one among them; sums so far stay right."""
    step = -(-len(items) // most) if items else 1
    return list(items[::-1][::step][::-1])


@dataclass(frozen=True)
class Times:
    """Place of each piece on the axis: from the end of the piece before to its own end.

    Attributes
    ----------
    edges : list of float
        Of the pieces: one more than there are.
    low, high : int
        Ticks at the ends of the axis.
    """

    edges: list[float]
    low: int
    high: int

    @classmethod
    def of(cls, pieces: Sequence[Piece], begin: int | None) -> Times:
        """The axis of some pieces, at least one; ``begin`` is the tick of the first event."""
        low = min(pieces[0].tick, pieces[0].tick if begin is None else begin)
        high = max(pieces[-1].tick, low + 1)
        empty = cls([], low, high)
        return cls([empty.x(tick) for tick in (low, *(piece.tick for piece in pieces))], low, high)

    def x(self, tick: int) -> float:
        """Place of a tick; those beyond the ends are put there."""
        share = (min(max(tick, self.low), self.high) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self, base: float, *, is_time: bool) -> Iterator[str]:
        """The axis."""
        yield f'<path class="axis" d="M{LEFT} {base:.1f}H{WIDTH - RIGHT}"/>'
        for tick in axis_ticks(self.low, self.high, 8, is_time=is_time):
            x = LEFT + (tick.at - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)
            yield f'<path class="axis" d="M{x:.1f} {base:.1f}v5"/>'
            yield label(x, base + 20, tick.label, anchor="middle")

    def line(self, panel: Panel, values: Sequence[float]) -> str:
        """The path of a value at each edge."""
        return "M" + "L".join(f"{x:.1f} {panel.y(value):.1f}" for x, value in zip(self.edges, values, strict=True))

    def stairs(self, panel: Panel, values: Sequence[float], kind: str, *, closed: bool = True) -> str:
        """One value a piece."""
        path = f"M{self.edges[0]:.1f} {panel.y(0 if closed else values[0]):.1f}"
        path += "".join(f"V{panel.y(v):.1f}H{x:.1f}" for v, x in zip(values, self.edges[1:], strict=True))
        return f'<path class="{kind}" d="{path}{f"V{panel.y(0):.1f}Z" if closed else ""}"/>'
