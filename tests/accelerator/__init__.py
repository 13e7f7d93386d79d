"""An accelerator without hardware, for tests: torch's device "emulated", whose memory nobody but its kernels can reach.

    pytest --accelerator -m gpu       the GPU-marked tests, on it; without an option torch does not know of it

It computes as the CPU does, and finds what a CPU device hides: host code that reads or writes an array of the device
(HostAccess at that line), copies, waits, operands in two memories. It is not asynchronous and says nothing about speed.
`accelerator.cpp` is built on first use, in some ten seconds, with the C++ compiler that there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "emulated"
SOURCE = Path(__file__).with_name("accelerator.cpp")
FOLDER = Path(__file__).parents[2] / "build" / "accelerator"
EVENTS = ("kernel", "to device", "to host", "wait", "fault")
SIGNAL = signal.SIGUSR2


class HostAccess(Exception):
    """Code of the host reached into the memory of an array on the device, just before this line."""


def missing() -> str:
    """Why it cannot be built here: empty if it can."""
    if not sys.platform.startswith("linux"):
        return "the emulated accelerator needs Linux"
    return "" if compiler() else "the emulated accelerator needs a C++ compiler"


def compiler() -> list[str]:
    asked = os.environ.get("CXX")
    if asked:
        return shlex.split(asked)
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    return [found] if found else []


def built() -> Path:
    """The library, compiled for this torch unless that was done."""
    import torch

    key = hashlib.sha256(f"{torch.__version__} {torch.__file__} {compiler()}".encode() + SOURCE.read_bytes())
    path = FOLDER / f"{key.hexdigest()[:16]}.so"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        home = Path(torch.__file__).parent
        part = path.with_suffix(f".{os.getpid()}")  # others may be building too
        include = [f"-isystem{home / 'include'}", f"-isystem{home / 'include/torch/csrc/api/include'}"]
        library = [f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{home / 'lib'}"]
        command = [
            *compiler(),
            "-std=c++20",
            "-O1",
            "-fPIC",
            "-shared",
            *include,
            str(SOURCE),
            "-o",
            str(part),
            *library,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}:\n{done.stderr}")
        part.replace(path)
    return path


@functools.cache
def load() -> ctypes.CDLL:
    """Make the device known to torch, for the rest of the process. Raises RuntimeError where it cannot be built."""
    import torch

    if missing():
        raise RuntimeError(missing())
    library = ctypes.CDLL(str(built()))
    for counter in (library.accelerator_count, library.accelerator_allocated):
        counter.restype = ctypes.c_int64
    library.accelerator_start()
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module(torch, library))
    torch.utils.generate_methods_for_privateuse1_backend()
    watch(library)
    return library


def loaded() -> bool:
    return load.cache_info().currsize > 0


def watch(library: ctypes.CDLL | None = None) -> None:
    """Announce faults by HostAccess. Again after others have set handlers of their own."""

    def announce(*_: Any) -> None:
        raise HostAccess("host code read or wrote memory of the device; the line is the one above, or just before it")

    signal.signal(SIGNAL, announce)
    (library or load()).accelerator_watch(int(SIGNAL))


def _module(torch: Any, library: ctypes.CDLL) -> types.ModuleType:
    """What torch asks of the module of a device."""
    module: Any = types.ModuleType(f"torch.{NAME}")
    index = lambda device=None: torch.device(device).index if type(device) in (str, torch.device) else device
    generators = [torch.Generator(torch.device(NAME, i)) for i in range(2)]
    generator = lambda device=NAME: generators[index(device) or 0]

    @contextlib.contextmanager
    def on(device: Any) -> Iterator[None]:
        before = module.current_device()
        module.set_device(device)
        yield
        module.set_device(before)

    module.is_available = module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = lambda: 2
    module.current_device = library.accelerator_current
    module.set_device = lambda device: library.accelerator_set_current(index(device) or 0)
    module.device = on
    module.synchronize = torch.accelerator.synchronize
    module.manual_seed_all = module.manual_seed = lambda seed: [g.manual_seed(seed) for g in generators]
    module.get_rng_state = lambda device=NAME: generator(device).get_state()
    module.set_rng_state = lambda state, device=NAME: generator(device).set_state(state)
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    return module


def counted() -> dict[str, int]:
    """How often each event has happened in this process."""
    return {event: load().accelerator_count(i) for i, event in enumerate(EVENTS)}


def allocated() -> int:
    """The bytes of the device that are in use, in whole pages."""
    return load().accelerator_allocated()


_seen: list[str] = []


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _note(event: int) -> None:
    _seen.append(f"{EVENTS[event]}, at\n{''.join(traceback.format_stack(limit=12)[:-1])}")


@contextlib.contextmanager
def forbidden(*events: str) -> Iterator[None]:
    """Inside, these events raise RuntimeError; at the end AssertionError, with the places, if somebody caught it.

    events    of EVENTS; by default copies to the host and waits
    """
    library = load()
    mask = sum(1 << EVENTS.index(event) for event in events or ("to host", "wait"))
    before, _seen[:] = library.accelerator_forbid(mask, _note), []
    try:
        yield
    finally:
        library.accelerator_forbid(before, _note)
    assert not _seen, "forbidden to the accelerator:\n" + "\n".join(_seen)
