"""`python -m minnp table` lists every function and what it is made of; `python -m minnp info` says what runs here;
`python -m minnp verify torch` (or mxnet) renews the list of that backend's kernels which agree with NumPy."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import platform
import sys
from importlib import metadata

import numpy as onp

import minnp
from minnp import backends, errors
from minnp.core import compiled
from minnp.core.cpu import products
from minnp.core.llvm import engine


def info() -> str:
    """Versions, backends, policy, threads, BLAS and C part of this installation, one fact per line."""
    blas = onp.show_config(mode="dicts")["Build Dependencies"]["blas"]
    facts = {"minnp": minnp.__version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for library in ("numpy", "autograd", "mxnet", "torch", "jax", "scipy", "llvmlite"):
        facts[library] = version(library)
    if not engine.available():
        facts["llvmlite"] += " (0.45 or newer makes machine code for jit: without it Python runs the loops)"
    if "mxnet" in backends.installed():
        facts["mxnet"] += " (import minnp before mxnet, which fails alone beside today's NumPy)"
    facts["BLAS"] = f"{blas['name']} {blas['version']}"
    openblas = products.openblas()
    if openblas is not None and openblas.kernels:
        facts["BLAS"] += f", kernels for {openblas.kernels}"
    if products.half_used(openblas):
        facts["BLAS"] += " (this processor has AVX-512: set OPENBLAS_CORETYPE=SkylakeX to halve the time of products)"
    facts["cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    facts["threads"] = ", ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ) or "not limited"
    facts["C part"] = ", ".join(library.__name__ for library in (compiled.fastpath, compiled.team) if library) or "none"
    facts["backends"] = ", ".join(["numpy", *backends.installed()])
    facts["policy"] = minnp.get_global_policy().name
    facts["context"] = repr(minnp.current_context())
    width = max(map(len, facts))
    return "\n".join(f"{name:{width}}  {fact}" for name, fact in facts.items())


def version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m minnp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, backends, policy, threads")
    table = commands.add_parser("table", help="every public function: what it is made of, its gradient, its kernels")
    table.add_argument("names", nargs="*", help="only these names; * matches (linalg.*)")
    table.add_argument("--markdown", action="store_true", help="as a page for the documentation")
    table.add_argument(
        "--backend", choices=backends.names(), help="only what runs on this backend's own kernels: names and how many"
    )
    verify = commands.add_parser("verify", help="renew the list of a backend's kernels that agree with NumPy")
    verify.add_argument("backend", choices=backends.names())
    verify.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    if options.command == "verify":
        try:
            backends.get(options.backend)
        except errors.BackendMissingError as missing:
            parser.error(str(missing))
        return importlib.import_module(f"minnp.backends.{options.backend}.verify").main(options.rest)
    if options.command == "info":
        print(info())
        return 0
    from minnp import table as tables  # asks every backend for its kernels: only when wanted

    if options.backend:
        kinds = tables.own_kernels(options.backend)
        for kind, names in kinds.items():
            print(f"{len(names)} {kind}: {' '.join(names)}")
        print(f"{sum(map(len, kinds.values()))} in all")
        return 0
    lines = tables.table(kernels=True, scipy=True)
    if options.names:
        lines = [line for line in lines if any(fnmatch.fnmatchcase(line.name, n) for n in options.names)]
        if not lines:
            table.error(f"no public name is {' or '.join(options.names)}")
    print(tables.markdown(lines) if options.markdown else tables.text(lines))
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
