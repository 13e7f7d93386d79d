"""The table: python -m tests.numpy_suite [file ...] [-v] [--required] [--update]"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy

from . import run

TO_EXPLAIN = "TO EXPLAIN"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_suite", description=run.__doc__)
    parser.add_argument(
        "files", nargs="*", help="part of a file's name, such as test_numeric or random/ (default: all)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list the failures, with what was raised")
    parser.add_argument("--required", action="store_true", help="only the files that must keep 95 %%")
    parser.add_argument("--update", action="store_true", help="rewrite the list of known failures; new ones are marked")
    parser.add_argument("--namespace", default="minnp.numpy", help="the namespace judged")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()

    names = [name for name in run.files() if not options.files or any(part in name for part in options.files)]
    if options.required:
        names = [name for name in names if name in run.REQUIRED]
    known, results = run.known(), []
    print(f"NumPy {numpy.__version__}: tests NumPy passes, and of those {options.namespace} passes")
    with ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(partial(run.compare, namespace=options.namespace), names):
            results.append(result)
            show(result, known.get(result.name), options.verbose)
    judged, failed = sum(r.judged for r in results), sum(len(r.failures) for r in results)
    print(f"{'all':36} {judged:6} {judged - failed:6} {100 * (1 - failed / max(judged, 1)):6.2f} %")
    if options.update:
        update(results, known)
    below = [r.name for r in results if r.name in run.REQUIRED and r.percent < 95]
    if below:
        print("below 95 %:", ", ".join(below))
    return len(below)


def show(result: run.Result, known: run.Known | None, verbose: bool) -> None:
    new = [test for test in result.failures if known is None or known.reason(test) is None]
    note = f"{len(new)} not listed" if new else ""
    print(
        f"{result.name:36} {result.judged:6} {result.judged - len(result.failures):6} {result.percent:6.2f} %  {note}",
        flush=True,
    )
    if verbose:
        for test, why in result.failures.items():
            print(f"    {'' if test not in new else 'NEW '}{test}\n        {why}")


def update(results: Iterable[run.Result], known: dict[str, run.Known]) -> None:
    """Write the failures found: patterns that still match keep their reason, the rest is marked to be explained."""
    for result in results:
        before = known.get(result.name, run.Known(0, 0))
        kept = {p: why for p, why in before.reasons.items() if any(run.matches(p, test) for test in result.failures)}
        section = run.Known(result.judged, result.collected, kept)
        section.reasons.update(
            {t: f"{TO_EXPLAIN} ({why[:120]})" for t, why in result.failures.items() if not section.reason(t)}
        )
        known[result.name] = section
    lines = [
        f"# NumPy {numpy.__version__}: of the tests that NumPy passes, those that minnp fails, each with its reason.",
        "# [file] passed by NumPy/collected; then: test (or pattern with *) | reason.",
        "# Renew: python -m tests.numpy_suite --update",
    ]
    for name in sorted(known):
        lines.append(f"[{name}] {known[name].judged}/{known[name].collected}")
        lines += [f"{test} | {why}" for test, why in sorted(known[name].reasons.items())]
    run.known_file().parent.mkdir(exist_ok=True)
    run.known_file().write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
