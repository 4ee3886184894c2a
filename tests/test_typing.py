"""The public interface has the types that users see: mypy checks a file that uses it as they do."""

from __future__ import annotations

from tests.processes import ROOT, python

API = ROOT / "tests" / "typing" / "public_api.py"


def test_the_public_names_have_their_types() -> None:
    done = python("-m", "mypy", "--strict", str(API))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_file_runs_too(tmp_path) -> None:
    """Or it would check what nobody can write."""
    from tests.typing import public_api

    query = public_api.queries()
    assert len(public_api.matches(query)) > 0
    public_api.stream(query)
    public_api.budget(query, tmp_path)
    assert public_api.mistakes("PATTERN") == "ACEP-Q002"
