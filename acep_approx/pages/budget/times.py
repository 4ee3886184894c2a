"""Time in the pictures of the report: an axis on which each piece of the stream has its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from acep_approx.pages.drawing import Panel, label
from acep_approx.timeline.picture import LEFT, RIGHT, WIDTH
from acep_approx.timeline.scale import axis_ticks

if TYPE_CHECKING:
    from acep_approx.budget.ledger import Piece

MOST_PIECES = 240
Item = TypeVar("Item")


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

    def stairs(self, panel: Panel, values: Sequence[float], kind: str, *, closed: bool = True) -> str:
        """One value a piece."""
        path = f"M{self.edges[0]:.1f} {panel.y(0 if closed else values[0]):.1f}"
        path += "".join(f"V{panel.y(v):.1f}H{x:.1f}" for v, x in zip(values, self.edges[1:], strict=True))
        return f'<path class="{kind}" d="{path}{f"V{panel.y(0):.1f}Z" if closed else ""}"/>'
