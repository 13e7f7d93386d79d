"""The table: python -m tests.array_api_suite [file ...] [-v]"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from . import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.array_api_suite", description=run.__doc__)
    parser.add_argument("files", nargs="*", help="part of a file's name, such as scipy/fft or sklearn (default: all)")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the failures, with what was raised")
    parser.add_argument("--namespace", default="minnp.numpy", help="the namespace judged")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()

    names = [name for name in run.files() if not options.files or any(part in name for part in options.files)]
    print(f"{run.versions()}: tests of the array API that run with {options.namespace}, and those that pass")
    ran, failed, new = 0, 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, found in zip(names, pool.map(lambda name: run.outcomes([name], options.namespace), names)):
            judged = {test: x for test, x in found.items() if x[0] != "skipped"}
            failures = {test: why for test, (outcome, why) in judged.items() if outcome == "failed"}
            unlisted = [test for test in failures if run.reason(test) is None]
            ran, failed, new = ran + len(judged), failed + len(failures), new + len(unlisted)
            if judged:
                note = f"  {len(unlisted)} not listed" if unlisted else ""
                print(f"{name:60} {len(judged):6} {len(judged) - len(failures):6}{note}", flush=True)
            for test, why in failures.items() if options.verbose else ():
                print(f"    {'NEW ' * (test in unlisted)}{test}\n        {why}", flush=True)
    print(f"{'all':60} {ran:6} {ran - failed:6}")
    return new


if __name__ == "__main__":
    raise SystemExit(main() > 0)
