"""Children of a process that the tests start: how they end is what the test is told. And what tests leave behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from alone import ROOT, answer, serve

pytestmark = pytest.mark.once("about processes of the tests")
SLEEPS = "import signal, time; signal.alarm(0); print('begun', flush=True); time.sleep(1000)"


def test_a_child_that_hangs_is_an_error_with_what_it_printed():
    """Whatever it does with alarms of its own; and the next child of the process runs."""
    with pytest.raises(TimeoutError, match=r"(?s)time.sleep\(1000\).* took longer than 3 s and printed\nbegun"):
        answer(Path(__file__), SLEEPS)
    assert answer(Path(__file__), "print(1)") == (0, "1\n")
    assert answer(Path(__file__), f"import os; os.kill(os.getpid(), {signal.SIGTERM:d})") == (-signal.SIGTERM, "")


@pytest.mark.long
def test_a_run_leaves_no_temporary_files(tmp_path):
    program, temporary = tmp_path / "test_that_leaves.py", tmp_path / "temporary"
    program.write_text("import tempfile\n\n\ndef test_leaves():\n    assert 'temporary' in tempfile.mkdtemp()\n")
    temporary.mkdir()
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "tests.conftest", "-p", "no:cacheprovider", program]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, check=True, capture_output=True)
    assert not list(temporary.iterdir())


if __name__ == "__main__":
    raise SystemExit(serve(exec, timeout=3))
