"""Runs a program in a process of its own, as a user would: what this process has imported does not help it."""

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_alone(program, *arguments, cwd=None, timeout=300):
    """What a program prints: a file, or its text. A warning is an error, and so is a failure."""
    command = [str(program)] if isinstance(program, Path) else ["-c", program]
    done = subprocess.run(
        [sys.executable, "-W", "error", *command, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    name = program.name if isinstance(program, Path) else program
    assert done.returncode == 0, f"{name} {arguments}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def run_forked(program, *arguments, modules=("numpy",), **environment):
    """What a program prints, a file or its text, in a child of a process that has imported these modules: NumPy and
    nothing of minnp, or what each of several programs would wait for. It must not fail."""
    file = isinstance(program, Path)
    return ask(Path(__file__), str(program), file, arguments, environment, modules=modules)


# ------------------------------------------------------------------ children of one process
def ask(script, *arguments, modules=()):
    """What a child of the process of a script that calls `serve` prints, given these arguments. It must not fail."""
    code, said = answer(script, *arguments, modules=modules)
    assert code == 0, f"{arguments}\n{said[-8000:]}"
    return said


def answer(script, *arguments, options=("-W", "error"), modules=()):
    """The exit code of the child, negative for a signal, and what it printed. A child that takes too long raises
    TimeoutError."""
    process = started(script, options, modules, os.environ.get("MINNP_BACKEND"))
    with tempfile.NamedTemporaryFile() as said:
        print(json.dumps([said.name, *arguments]), file=process.stdin, flush=True)
        status, late = json.loads(process.stdout.readline())
        printed = Path(said.name).read_text()
        if late:
            raise TimeoutError(f"{arguments} took longer than {late} s and printed\n{printed[-6000:]}")
        return os.waitstatus_to_exitcode(status), printed


@functools.cache
def started(script, options, modules, backend):
    command = [sys.executable, *options, script, *modules]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def serve(work, timeout=300):
    """Call `work` with the arguments that each line of the input has, in a child, and print how that ended, and the
    limit in seconds if the child was ended for it: by this process, for the child may have alarms of its own."""
    for line in sys.stdin:
        said, *arguments = json.loads(line)
        if child := forked():
            print(json.dumps(awaited(child, timeout)), flush=True)
            continue
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with open(said, "w") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        return work(*arguments)
    return 0


def awaited(child, timeout):
    late = 0

    def end(*_):
        nonlocal late
        late = timeout
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(timeout)
    status = os.waitpid(child, 0)[1]
    signal.alarm(0)
    return status, late


def forked():
    """os.fork(), whose child does not look for garbage in what there is already: it takes longer than most programs."""
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, for OpenBLAS's threads, which sleep
        return os.fork()


def run(program, file, arguments, environment):
    os.environ.update(environment)
    sys.argv = [program if file else "-c", *arguments]
    if file:
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(program, vars(main))


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    sys.exit(serve(run))
