"""Pictures of graphs: nothing overlaps, edges lead to their nodes, all is escaped, and large graphs stay small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query, compile_rules
from acep_approx.automaton.draw import graph_of
from acep_approx.diagrams.fragments import drawn
from acep_approx.diagrams.graph import Edge, Graph, Node, dot, mermaid
from acep_approx.diagrams.layered_layout import Box, lay_out
from acep_approx.diagrams.svg import MOST_EDGES, MOST_NODES, svg
from acep_approx.diagrams.text_layout import shortened, wrapped
from tests.cases import examples
from tests.command_line import acep

SVG = "{http://www.w3.org/2000/svg}"
QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1",
    "PATTERN SEQ(A a, (B b | C c), D d) WITHIN 5",
    "PATTERN SEQ(Stock a, Stock+ b[], Stock c) WHERE b[i].p > b[i-1].p AND c.p < 0.8 * b[b.LEN].p WITHIN 1 h",
    "PATTERN SEQ(Shelf a, ~Register b, Exit c) WHERE [tag_id] WITHIN 12 h",
    "PATTERN SEQ(A a, (SEQ(B b[], C c[]))+, D d) WHERE d.x > a.x WITHIN 9 ERRORS 1",
    "a(b|c)*d WITHIN 5 ERRORS 1",
    "SELECT Name FROM FILTER{Volume > 10} Stock FOLD{$2.Name = $.Name, $2.Price < $.Price, } Stock WITHIN 100",
    (
        "PATTERN AUTOMATON (REGISTERS n = 0 q -> p ON A a SET n = 1 p -> p ON B b WHEN b.x > n p -> q ON C c "
        "p -> r ON D d r -> s ON E e q -> t ON F f FINAL s, t) WITHIN 9"
    ),
    f"PATTERN SEQ({', '.join(f'T{i} v{i}' for i in range(30))}) WITHIN 100 ERRORS 2",
]


def graph(text: str) -> Graph:
    """The graph of a query."""
    plan = compile_query(text).plan
    return graph_of(plan.registers or plan.automaton)


def texts(picture: str) -> str:
    """All that is written in a picture, with what a pointer shows."""
    return " ".join("".join(part.itertext()) for part in ET.fromstring(picture).iter() if part.tag != f"{SVG}style")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[tuple[int, int, Box | None, float]]]:
    """Any boxes, and any edges between them, in circles, too."""
    size = st.floats(1, 90)
    boxes = draw(st.lists(st.builds(Box, size, size, size), min_size=1, max_size=9))
    place = st.integers(0, len(boxes) - 1)
    edge = st.tuples(place, place, st.none() | st.builds(Box, size, size, size), st.sampled_from([1.0, 8.0]))
    return boxes, [one for one in draw(st.lists(edge, max_size=14)) if one[0] != one[1]]


@given(graphs())
@examples(60)
def test_nothing_lies_over_anything_else(made):
    boxes, edges = made
    layout = lay_out(boxes, edges)
    spots = {id(spot): spot for spot in layout.nodes} | {id(s): s for route in layout.routes for s in route.spots}
    for one, two in pairwise(sorted(spots.values(), key=lambda spot: (spot.layer, spot.across))):
        if one.layer == two.layer:
            assert one.across + one.box.after <= two.across - two.box.before + 1e-6
        else:
            assert layout.layers[one.layer][1] < layout.layers[two.layer][0]
    for spot in spots.values():
        low, high = layout.layers[spot.layer]
        assert low - 1e-6 <= spot.at - spot.box.along / 2
        assert spot.at + spot.box.along / 2 <= high + 1e-6
        assert layout.low - 1e-6 <= spot.across - spot.box.before
        assert spot.across + spot.box.after <= layout.high + 1e-6
    for (source, target, label, _), route in zip(edges, layout.routes, strict=True):
        assert (route.spots[0], route.spots[-1]) == (layout.nodes[source], layout.nodes[target])
        assert {abs(one.layer - two.layer) for one, two in pairwise(route.spots)} == {1}
        assert (route.label is None) == (label is None)


def test_a_chain_leads_straight_on():
    box = Box(40, 18, 18)
    layout = lay_out([box] * 4, [(i, i + 1, Box(20, 9, 9), 1.0) for i in range(3)])
    assert len({round(spot.across, 6) for spot in layout.nodes}) == 1
    assert [spot.layer for spot in layout.nodes] == [0, 2, 4, 6]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("direction", ["right", "down"])
def test_every_state_and_arc_is_in_the_picture(text, direction):
    made = graph(text)
    picture = svg(made, direction)
    root = ET.fromstring(picture)
    assert root.attrib["role"] == "img"
    said = texts(picture)
    if len(made.nodes) <= MOST_NODES and len(made.edges) <= MOST_EDGES:
        assert all(node.text in said for node in made.nodes)
        assert all(edge.text in said for edge in made.edges)
        assert "drawn:" not in said
    drawn_nodes = [part for part in root.iter(f"{SVG}rect") if "node" in part.attrib["class"].split()]
    assert len(drawn_nodes) == min(len(made.nodes), MOST_NODES)
    wide, high = (float(root.attrib[side]) for side in ("width", "height"))
    for part in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(part.attrib.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= wide
        assert 0 <= y <= y + h <= high


def test_a_picture_loads_and_runs_nothing():
    picture = drawn(graph(QUERIES[0]))
    assert "<script" not in picture
    assert not re.findall(r"(?:href|src|url)\s*[=(]", picture)
    assert set(re.findall(r"https?://[^\"]*", picture)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme:dark" in picture


def test_what_users_write_is_escaped():
    picture = compile_query("PATTERN SEQ(A a, B b) WHERE a.x <> '<script>\"&' WITHIN 5").explain("svg")
    assert "<script" not in picture
    assert '<script>"&' in texts(picture)


def test_long_texts_are_shortened_and_whole_in_the_title():
    long = " and ".join(f"a.attribute_{i} > {i}" for i in range(30))
    made = Graph("one", [Node("a", "x" * 200), Node("b", "b", notes=tuple(f"note {i}" for i in range(9)))],
                 [Edge("a", "b", long)])  # fmt: skip
    root = ET.fromstring(svg(made))
    shown = [part.text or "" for part in root.iter(f"{SVG}text")]
    assert max(map(len, shown)) <= 40
    assert "and 6 more" in shown
    assert {long, "x" * 200} <= {part.text for part in root.iter(f"{SVG}title")}
    assert float(root.attrib["width"]) < 900


def test_a_large_graph_is_drawn_in_part_and_says_so():
    nodes = [Node(f"n{i}", f"state {i}") for i in range(300)]
    edges = [Edge(f"n{i}", f"n{j}", "e") for i in range(300) for j in (i + 1, i + 2) if j < 300]
    picture = svg(Graph("many", nodes, edges))
    assert "drawn: 40 of 300 nodes and 77 of 597 edges" in texts(picture)
    assert "state 39" in texts(picture)
    assert len(picture) < 60_000


def test_a_graph_turns_down_where_the_box_is_narrow():
    """Where it would be too small to be read; a long chain only on a phone, as it would be very tall."""

    def turn(text: str) -> tuple[int, int]:
        shown = drawn(graph(text))
        (found,) = re.findall(r"@container \(max-width:(\d+)px\)", shown)
        return int(found), int(float(re.findall(r'width="(\d+)"', shown)[0]))

    short, wide = turn(QUERIES[0])
    assert short == round(0.74 * wide)
    assert turn(QUERIES[-1])[0] == 600


def test_a_graph_of_nothing_is_drawn():
    assert ET.fromstring(svg(Graph("none", [], []))).tag == f"{SVG}svg"
    assert drawn(Graph("none", [], [])) == ""


def test_lines_of_a_label():
    assert shortened("abcdefghij", 5) == "ab…ij"
    assert wrapped("", 10, 2) == []
    assert wrapped("x" * 500, 10, 2) == ["xxxxxxxxxx", "…xxxxxxxxx"] or len(wrapped("x" * 500, 10, 2)) <= 2


# --- the same graph, three ways ----------------------------------------------------------------------------------


RULES = """
TABLE status (id text, level int DEFAULT 0, KEY (id))
RULE up ON PATTERN Come a WHERE store.status[a.id].level = 0 WITHIN 1 DO UPDATE status SET level = 1 AT (a.id) END
RULE down ON PATTERN Go a WHERE store.status[a.id].level = 1 WITHIN 1 DO UPDATE status SET level = 0 AT (a.id) END
RULE tell ON PATTERN Look a WHERE store.status[a.id].level = 1 WITHIN 1 DO CALL badge(a.id) END
"""


def test_rules_in_a_circle_are_drawn_from_one_graph():
    rules = compile_rules(RULES)
    picture = rules.graph("svg")
    said = texts(picture)
    for word in ("status", "up", "down", "tell", "CALL badge", "in turn"):
        assert word in said
        assert word in rules.graph("mermaid")
        assert word in rules.graph("dot")
    turn = [part for part in ET.fromstring(picture).iter(f"{SVG}rect") if "rule turn" in part.attrib["class"]]
    assert len(turn) == 2


def test_mermaid_and_dot_have_all_nodes_and_edges():
    made = graph(QUERIES[4])
    assert len(re.findall(r"^  s\d+\(", mermaid(made), re.MULTILINE)) == len(made.nodes)
    assert len(re.findall(r"^  s\d+ -> ", dot(made), re.MULTILINE)) == len(made.edges)
    assert 'label="é"' in dot(Graph("g", [Node("a", "é")], []))


def test_explain_draws_on_the_command_line(tmp_path):
    query = compile_query(QUERIES[0])
    assert acep("explain", QUERIES[0], "--format", "svg").stdout == f"{query.explain('svg')}\n"
    file = tmp_path / "rules.acep"
    file.write_text(RULES, encoding="utf-8")
    assert acep("explain", str(file), "--format", "svg").stdout == f"{compile_rules(RULES).graph('svg')}\n"


def test_what_passes_by_is_drawn_where_runs_wait():
    """Not at the start, where nothing waits; not at the end; and not where the next event must be the next one."""
    made = graph("PATTERN SEQ(A a, B b, C c) WITHIN 5")
    assert [node.passes for node in made.nodes] == ["", "every event", "every event", ""]
    strict = graph("PATTERN SEQ(A a, B b, C c) WHERE strict_contiguity(a, b, c) WITHIN 5")
    assert [node.passes for node in strict.nodes] == ["", "", "", ""]
