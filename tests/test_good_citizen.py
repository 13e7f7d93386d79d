"""What `import minnp` and its use change of other libraries: a picture of their names and NumPy's C slots, before and
after. Run as a program, this file prints the names that differ."""

import ctypes
import fnmatch
import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

LIBRARIES = ["numpy", "numpy.testing", "scipy", "scipy.optimize", "scipy.sparse.linalg", "scipy.stats", "scipy.ndimage"]
LIBRARIES += [
    "pandas",
    "torch",
    "torch.utils.data",
    "matplotlib",
    "matplotlib.pyplot",
    "sklearn",
    "sklearn.linear_model",
]
LIBRARIES += ["sklearn.model_selection"]

# The words of a type object from tp_dealloc to tp_free, and how many words its tables of slots hold: object.h of
# CPython 3.11 to 3.13.
WORD = ctypes.c_void_p
SLOTS = (
    "dealloc vectorcall_offset getattr setattr as_async repr as_number as_sequence as_mapping hash call str getattro"
)
SLOTS += " setattro as_buffer flags doc traverse clear richcompare weaklistoffset iter iternext methods members getset"
SLOTS += " base dict descr_get descr_set dictoffset init alloc new free"
TABLES = {"as_async": 4, "as_number": 36, "as_sequence": 10, "as_mapping": 3, "as_buffer": 2}
BEFORE_SLOTS, HEAP_TYPE, VERSION_VALID = 6 * ctypes.sizeof(WORD), 1 << 9, 1 << 19

# What minnp changes, each with why. The list may only get shorter: a line that nothing matches fails.
STILL = {
    "sys.meta_path": "finders of minnp's own submodules (minnp.numpy.ma), and of mxnet, which needs help",
}


def slots_of(cls: type) -> dict:
    """The C slots of a static type, and what its tables of slots hold."""
    words = (WORD * len(SLOTS.split())).from_address(id(cls) + BEFORE_SLOTS)
    found = dict(zip(SLOTS.split(), words, strict=True))
    del found["dict"]  # looked at by name
    found["flags"] = (found["flags"] or 0) & ~VERSION_VALID  # set by the next look-up of an attribute
    for table, size in TABLES.items():
        if found[table]:
            found[table] = found[table], *(WORD * size).from_address(found[table])
    return found


def picture(modules: list[str]) -> tuple[dict, list]:
    """Every attribute of these modules and of the classes in them, every C slot of NumPy's classes: name -> identity.
    And what must stay alive for the identities to mean something."""
    seen, alive, classes = {"sys.meta_path": tuple(map(id, sys.meta_path))}, [*sys.meta_path], {}
    for name in modules:
        for attribute, value in list(vars(sys.modules[name]).items()):
            seen[f"{name}.{attribute}"] = id(value)
            alive.append(value)
            if isinstance(value, type):
                classes[value] = None
    for cls in classes:
        name = f"{cls.__module__}.{cls.__qualname__}"
        for attribute, value in list(vars(cls).items()):
            seen[f"{name}.{attribute}"] = id(value)
            alive.append(value)
        if name.startswith("numpy.") and not cls.__flags__ & HEAP_TYPE:
            seen.update({f"{name}:tp_{slot}": value for slot, value in slots_of(cls).items()})
    return seen, alive


def use() -> None:
    """A little of everything."""
    import numpy

    import minnp
    import minnp.numpy as np

    def f(x):
        y = np.zeros(3)
        y[1:] = np.exp(x[1:]) * numpy.float64(2)
        return (y @ y).sum()

    x = np.arange(3.0)
    minnp.grad(f)(x), minnp.jit(f)(x), minnp.vmap(f)(np.ones((2, 3))), minnp.jvp(f, (x,), (x,))
    (
        numpy.add(x, numpy.ones(3)),
        numpy.ones(3) + x,
        numpy.concatenate([x, x]),
        np.random.rand(3),
        np.linalg.inv(np.eye(2)),
    )

    class Mine(np.ndarray):
        pass

    x.view(Mine) + 1


def changes() -> list[str]:
    """What is another thing after `import minnp` and its use."""
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError:
            continue
    roots = {library.partition(".")[0] for library in LIBRARIES}
    modules = [n for n, m in sys.modules.items() if n.partition(".")[0] in roots and isinstance(m, types.ModuleType)]
    picture(modules)  # what is made on first use is made
    before, alive = picture(modules)
    use()
    after, others = picture(modules)
    del alive, others
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@pytest.mark.long
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the layout of type objects is not known to the test")
def test_importing_and_using_minnp_changes_nothing_else_of_other_libraries():
    run = [sys.executable, "-W", "ignore", __file__]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    found = subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout.split()
    assert [name for name in found if not any(fnmatch.fnmatch(name, known) for known in STILL)] == []
    assert [known for known in STILL if not fnmatch.filter(found, known)] == []


if __name__ == "__main__":
    print(*changes(), sep="\n")
