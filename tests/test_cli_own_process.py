"""What the program settles for its own process, and leaves alone in those of others."""

from __future__ import annotations

import pytest

from tests.processes import python

PANDAS = """
import sys
import pyarrow as pa
from acep_approx.cli import process
if {begins}:
    process.begin()
process.hide_pandas()
pa.array([1.5])
print("pandas" in sys.modules)
print(type(pa.table({{"x": [1]}}).to_pandas()).__module__.partition(".")[0])
import pandas
print(pa.array(pandas.Series([1.5, None])).null_count)
"""
MANY = "time,key,type\n" + "".join(f"{at},K{at % 97},{'AB'[at // 97 % 2]}\n" for at in range(5000))
QUERY = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 100"
COMMAND = """
import sys
from acep_approx.cli.main import main
try:
    main()
finally:
    print("pandas" in sys.modules)
"""
SETTINGS = "OPENBLAS_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL"
SHOWN = f"""
import gc, os
from acep_approx.cli import process
process.begin()
print(*(os.environ[name] for name in {SETTINGS}), gc.isenabled())
"""


def test_arrow_does_without_pandas_until_a_frame_is_wanted():
    done = python("-c", PANDAS.format(begins=True))
    assert done.stdout.split()[:2] == ["False", "pandas"], done.stderr


def test_arrow_knows_frames_again_once_one_was_made():
    done = python("-c", PANDAS.format(begins=True))
    assert done.stdout.split()[2] == "1", done.stderr


def test_a_process_of_others_is_left_as_it_is():
    done = python("-c", PANDAS.format(begins=False))
    assert done.stdout.split() == ["True", "pandas", "1"], done.stderr


def test_what_the_user_has_set_stays():
    ours = python("-c", SHOWN, **dict.fromkeys(SETTINGS, ""))
    theirs = python("-c", SHOWN, OPENBLAS_NUM_THREADS="3", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert theirs.stdout.split() == ["3", "mimalloc", "True"], theirs.stderr
    assert ours.returncode == 0


@pytest.mark.parametrize(
    "args", [["demo", "-q", "-o"], ["run", QUERY], ["why", QUERY, "--key", "key=K5", "--around", "99"]]
)
def test_commands_import_no_pandas(args, tmp_path):
    """To import it takes a fifth of a second; pyarrow did so for many text keys, and for scalars without a type."""
    file = tmp_path / "e.csv"
    file.write_text(MANY)
    done = python("-c", COMMAND, *args, str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False"
