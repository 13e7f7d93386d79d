"""The programs of docs/guide/distributed.md print what the page shows: the longest job under torchrun, the others as
ranks of a process that has imported torch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once("programs of processes"), pytest.mark.host("the page shows the default policy")]
ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guide" / "distributed.md").read_text()
BLOCKS = re.findall(r"^```py (\w+\.py)\n(.*?)^```\n+```text\n(.*?)^```$", PAGE, re.S | re.M)
PROGRAMS = [
    (name, program, *shown.partition("\n")[::2])
    for name, program, sessions in BLOCKS
    for shown in sessions.split("$ torchrun ")[1:]
]
BY_TORCHRUN = "accident"  # of which it starts both ranks anew; seconds, for each process imports torch


@pytest.mark.parametrize(
    ("name", "program", "command", "shown"),
    [pytest.param(*p, marks=pytest.mark.long if p[0] == "total.py" else pytest.mark.slow, id=p[2]) for p in PROGRAMS],
)
def test_a_program_prints_what_the_page_shows(job, tmp_path, name, program, command, shown):
    pytest.importorskip("torch", reason="torchrun comes with torch")
    (tmp_path / name).write_text(program)
    *options, size = command.split(f" {name}")[0].split()
    if not command.endswith(BY_TORCHRUN):
        assert options == ["--nproc-per-node"]
        ended = job(int(size), [tmp_path / name])
        assert [code for code, _, _ in ended] == [0] * int(size), ended
        assert "".join(text for _, text, _ in ended) == shown
        return
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", *command.split()]
    done = subprocess.run(torchrun, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_the_page_has_programs():
    assert len(BLOCKS) == PAGE.count("\n```py ")
