"""Runs NumPy's test files on NumPy and on ours, compares them test by test, and keeps the list of known failures."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy

from tests.alone import answer

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NUMPY = Path(numpy.__path__[0])
PARTS = ("core", "lib", "linalg", "random", "fft", "polynomial", "ma", "matrixlib")

# Files that must keep 95 %: the ones that say what NumPy is to its users.
REQUIRED = {
    f"{part}/test_{name}"
    for part, names in {
        "core": ("numeric", "umath", "ufunc", "indexing", "multiarray", "shape_base", "einsum", "function_base"),
        "lib": ("shape_base", "function_base", "arraysetops", "index_tricks", "stride_tricks", "nanfunctions"),
        "linalg": ("linalg",),
        "random": ("random", "randomstate", "randomstate_regression", "generator_mt19937", "regression", "smoke")
        + ("generator_mt19937_regressions", "seed_sequence"),
        "fft": ("pocketfft", "helper"),
        "polynomial": ("chebyshev", "classes", "hermite", "hermite_e", "laguerre", "legendre", "polynomial")
        + ("polyutils", "printing", "symbol"),
    }.items()
    for name in names
}
# Files that test how NumPy is built, not what it offers: nothing in them reaches the namespace.
NOT_OURS = re.compile(
    r"core/test_(cython|limited_api|cpu_\w+|simd\w*|mem_policy|argparse|hashtable|extint128|umath_accuracy)"
    r"|random/test_(extending|direct)"
)


@dataclass
class Result:
    """One file: the tests NumPy passes, how many it collected, and those of them that fail with ours."""

    name: str
    judged: int
    collected: int
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        return 100 * (1 - len(self.failures) / self.judged) if self.judged else 100.0


def files() -> dict[str, Path]:
    """'core/test_numeric' -> the installed file, for every test file that judges us."""
    found = {}
    for part in PARTS:
        folder = NUMPY / f"_{part}" if part == "core" and (NUMPY / "_core/tests").exists() else NUMPY / part
        for path in sorted((folder / "tests").glob("test_*.py")):
            name = f"{part}/{path.stem}"
            if not NOT_OURS.fullmatch(name):
                found[name] = path
    return found


def outcomes(path: Path, namespace: str, only: list[str] | None = None, parts: int = 1) -> dict[str, tuple[str, str]]:
    """test id -> (outcome, why) of one file, or of `only` some of its tests, or of one of so many `parts` of what there
    are over a thousand cases of, under one namespace; goes on after a test that kills the process."""
    done: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        plan, log = Path(scratch, "plan.json"), Path(scratch, "log")
        for _ in range(20):
            asked = {"namespace": namespace, "log": str(log), "done": list(done), "only": only, "parts": parts}
            plan.write_text(json.dumps(asked))
            before = len(done)
            died = run_file(path, plan, scratch)
            if log.exists():
                done.update(
                    (test, (outcome, why)) for outcome, test, why in map(json.loads, log.read_text().splitlines())
                )
            if not died or len(done) == before:
                break
    return done


def run_file(path: Path, plan: Path, scratch: str) -> bool:
    """Run one file in its own process; True if the process did not reach the end of the session."""
    command = [str(path), "-c", str(HERE / "suite.ini"), "--rootdir", str(NUMPY.parent)]
    command += ["-p", "tests.numpy_suite.loader", "-q", "--tb=line", "-m", "not slow"]
    for plugin in ("cacheprovider", "xdist", "logging", "hypothesispytest"):  # the last two work at each of the tests
        command += ["-p", f"no:{plugin}"]
    code, said = answer(HERE / "child.py", str(plan), scratch, command, options=())
    if code > 0 and code not in (1, 2, 5):
        raise RuntimeError(f"pytest could not run {path}:\n{said[-6000:]}")
    return code < 0


def judge(name: str) -> dict[str, tuple[str, str]]:
    """NumPy's own outcomes; kept in .judge (not in the repository), as they only change with NumPy."""
    kept = HERE / ".judge" / numpy.__version__ / f"{name}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    found = outcomes(files()[name], "numpy")
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found


def compare(name: str, namespace: str = "minnp.numpy") -> Result:
    """The tests of one file that NumPy passes and `namespace` does not."""
    theirs, own = judge(name), outcomes(files()[name], namespace)
    passed = [test for test, (outcome, _) in theirs.items() if outcome == "passed"]
    return Result(name, len(passed), len(theirs), failures(passed, own))


FINE = ("passed", "left out")


def failures(passed: list[str], own: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Those of the tests that NumPy passes which are not passed in `own` -> what happened."""
    crash = own.get("collection", ("", "the test was not collected"))[1]
    found = {test: own.get(test, ("missing", crash)) for test in passed}
    return {test: f"{outcome}: {why}" for test, (outcome, why) in found.items() if outcome not in FINE}


# ------------------------------------------------------------------ known failures
@dataclass
class Known:
    """One section of known_failures/<version>.txt: what NumPy passed and collected, and pattern -> reason."""

    judged: int
    collected: int
    reasons: dict[str, str] = field(default_factory=dict)

    def reason(self, test: str) -> str | None:
        if test in self.reasons:
            return self.reasons[test]
        return next(
            (reason for pattern, reason in self.reasons.items() if "*" in pattern and matches(pattern, test)), None
        )


@cache
def compiled(pattern: str) -> re.Pattern:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def matches(pattern: str, test: str) -> bool:
    return compiled(pattern).fullmatch(test) is not None


def known_file() -> Path:
    return HERE / "known_failures" / f"{numpy.__version__}.txt"


def known() -> dict[str, Known]:
    """The list for the installed NumPy. Lines: `[file] judged/collected`, then `test id or pattern with * | reason`."""
    sections: dict[str, Known] = {}
    if not known_file().exists():
        return sections
    for line in known_file().read_text().splitlines():
        if line.startswith("["):
            name, counts = line[1:].split("] ")
            sections[name] = section = Known(*map(int, counts.split("/")))
        elif line and not line.startswith("#"):
            pattern, reason = line.rsplit(" | ", 1)
            section.reasons[pattern] = reason
    return sections


def unexpected(name: str, parts: int = 1) -> dict[str, str]:
    """Failures of one file that are not on the list. NumPy itself is asked only about tests that look wrong."""
    listed = known().get(name, Known(0, 0))
    own = outcomes(files()[name], "minnp.numpy", parts=parts)
    suspects = [test for test, (outcome, _) in own.items() if outcome not in FINE and listed.reason(test) is None]
    if not suspects and len(own) >= listed.collected:
        return {}
    theirs = outcomes(files()[name], "numpy", suspects) if len(own) >= listed.collected else judge(name)
    passed = [test for test, (outcome, _) in theirs.items() if outcome == "passed" and listed.reason(test) is None]
    return failures(passed, own)
