"""What objects show in a notebook: nothing is loaded or run, nothing is used up or changed, and nothing fails."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.api.views import set_graph
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import UsageError
from acep_approx.results.matches import Match
from acep_approx.results.views import MOST_EVENTS
from tests.command_line import acep
from tests.notebook_objects import CELLS, EVENTS, NASTY, OBJECTS, budgeted, desk, known


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_draws_itself(name):
    """One element, well formed, with its style; it loads and runs nothing, and what users wrote is escaped."""
    one = OBJECTS[name]()
    shown = one._repr_html_()
    assert "cannot be drawn" not in shown
    assert shown.startswith('<div class="acep-view"><style>')
    ET.fromstring(shown)
    assert "<script" not in shown
    assert not re.search(r"<link|<img|@import|url\(|javascript:|\son\w+=", shown)
    assert set(re.findall(r"https?://[^\"]*", shown)) <= {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme:dark" in shown
    assert len(shown) < 120_000
    assert "\n" not in repr(one)
    assert "object at 0x" not in repr(one)
    assert one._repr_html_() == shown or "ms" in shown


def texts(shown: str) -> str:
    """All that is written."""
    return " ".join("".join(part.itertext()) for part in ET.fromstring(shown).iter() if not part.tag.endswith("style"))


def test_a_match_has_its_events_and_the_missing_ones_on_a_line():
    match = next(one for one in CELLS.match(EVENTS) if one.missing == ("b",))
    shown = match._repr_html_()
    assert f"a: row {match['a']}" in texts(shown)
    assert "b: missing" in texts(shown)
    assert shown.count('class="there"') == 2
    assert shown.count('class="gone"') == 1


def test_a_match_of_many_events_is_cut_and_says_so():
    match = Match(0, 1, 99, {}, (), {"b": list(range(100)), "c": None})
    assert "and 76 more events" in texts(match._repr_html_())


def test_what_return_asks_for_is_a_table():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.x AS x")
    match = next(iter(query.match(EVENTS)))
    assert "<circle" not in match._repr_html_()
    assert str(match["x"]) in texts(match._repr_html_())


def test_a_display_reads_a_bounded_part_and_says_so():
    rows = 3 * MOST_EVENTS
    events = pa.table({"ts": pa.array(range(rows)), "type": pa.array(["A", "B", "C"] * MOST_EVENTS)})
    matches = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 2").match(events)
    shown = texts(matches._repr_html_())
    told = re.search(r"A display reads the beginning: ([\d,]+) of 600,000 events", shown)
    assert told
    assert int(told[1].replace(",", "")) <= MOST_EVENTS + 20_000
    sorting = compile_query("PATTERN A a WITHIN 2").match(events, sort=True)._repr_html_()
    assert "which a display does not do" in texts(sorting)


def test_where_there_is_no_match_it_says_which_step_no_event_passed():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > 99 WITHIN 3")
    shown = texts(query.match(EVENTS)._repr_html_())
    assert query.match(EVENTS).no_match().headline in shown
    assert "0 match points in 900 events" in shown


def test_a_display_changes_nothing(tmp_path):
    """Neither what the last run did, nor what was left out of it, nor files; and what can be read once is not read."""
    late = tmp_path / "late.jsonl"
    events = [{"ts": t, "type": "AB"[t % 2]} for t in (1, 2, 5, 3, 6, 7)]
    matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 3").match(events, on_late="skip", late=late)
    first = [match.values for match in matches]
    before = matches.source.late.count, matches.work.events, late.read_bytes(), late.stat().st_mtime_ns
    matches._repr_html_()
    assert (matches.source.late.count, matches.work.events, late.read_bytes(), late.stat().st_mtime_ns) == before
    assert [match.values for match in matches] == first
    (tmp_path / "bad.csv").write_text("ts,type\n1,A\n2,B\n3,A,A\n4,B\n", encoding="utf-8")
    for last in ("B", "A"):  # with and without a match
        matches = compile_query(f"PATTERN SEQ(B a, {last} b) WITHIN 2").match(tmp_path / "bad.csv", on_malformed="skip")
        matches.to_arrow()
        matches._repr_html_()
        assert matches.source.malformed.count == 1
    once = CELLS.match(iter(EVENTS))
    assert "only once" in texts(once._repr_html_())
    assert len(list(once)) == len(CELLS.match(EVENTS))


def test_a_display_of_budgeted_matches_is_not_their_run():
    some = budgeted()
    before = some.record()
    some._repr_html_()
    assert some.record().pieces == before.pieces
    assert some.work.events == len(EVENTS)


def test_the_history_is_a_few_states_and_all_completions_pass():
    shown = texts(known()._repr_html_())
    for word in ("900", "events learned from", "led to a match", "share of the work", "start", "match"):
        assert word in shown
    from acep_approx.training.history_graph import history_graph

    graph = history_graph(known().graph_)
    into = [edge for edge in graph.edges if edge.target == "match"]
    assert sum(edge.weight for edge in into) == pytest.approx(1.0)
    assert len(graph.nodes) <= 2 + len(known().graph_.scheme.places)


def test_queries_alike_are_one_node_of_a_set():
    made = desk()
    graph = set_graph(made.levels(), made.streams())
    assert [node.name for node in graph.nodes if node.kind == "query"] == ["30 queries", "up", NASTY]
    assert [node.shown for node in graph.nodes if node.kind == "stream"][:2] == ["events", "Up"]
    assert "b.x > 7" in texts(made._repr_html_())  # its own constant, not that of a template


def test_a_set_draws_who_feeds_whom_for_other_programs(tmp_path):
    made = desk()
    assert 'q0["30 queries: low0, low1' in made.graph()
    assert made.graph("dot").startswith("digraph queries {")
    assert made.graph("svg").startswith('<svg class="acep-graph"')
    with pytest.raises(UsageError, match="ACEP-U001"):
        made.graph("png")
    (tmp_path / "up.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.x AS x PUBLISH Up", encoding="utf-8")
    (tmp_path / "high.acep").write_text("PATTERN Up u WHERE u.x > 3 WITHIN 5", encoding="utf-8")
    drawn = acep("explain", "--queries", str(tmp_path), "--format", "mermaid").stdout
    assert "Up" in drawn
    assert drawn.startswith("flowchart LR")


def test_a_set_of_many_queries_is_a_table_of_levels():
    made = QuerySet(time="ts")
    made.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", pa.table({"low": list(range(5000))}))
    shown = texts(made._repr_html_())
    assert "5,000" in shown
    assert "such as" in shown
    assert made.text("q4711").split()[6:9] == ["b.x", ">", "4710"]


def test_texts_of_queries_stay_while_they_run():
    made = QuerySet(time="ts")
    made.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 7}])
    made.push(EVENTS[:50])
    assert [made.text(id_).split()[8] for id_ in made] == ["1", "7"]
    assert "FOLD" not in made.text(made.add("SELECT x FROM A NEXT{$2.x > $1.x} B WITHIN 9").id)


def test_a_record_has_the_numbers_and_the_picture():
    record = budgeted().record("shop.csv")
    shown = texts(record._repr_html_())
    for word in ("shop.csv under a budget of 20%", f"{record.shed_runs:,}", f"{record.work:,}", "run-steps so far"):
        assert word in shown
    assert repr(record).startswith("<RunRecord of shop.csv under a budget of 20%: ")


def test_a_display_that_fails_shows_the_object():
    class Broken:
        def __repr__(self) -> str:
            return "<Broken & sad>"

        @never_raises
        def _repr_html_(self) -> str:
            raise ValueError("<no>")

    shown = Broken()._repr_html_()
    assert "&lt;Broken &amp; sad&gt;" in shown
    assert "It cannot be drawn: ValueError: &lt;no&gt;" in shown


def test_matches_of_wrong_events_say_what_is_wrong():
    shown = texts(CELLS.match([{"ts": 1, "kind": "A"}])._repr_html_())
    assert "cannot be drawn" in shown
    assert "ACEP-" in shown
