"""jit: capture once, run the graph after.

Compiled code is keyed on the arguments' structure, shapes, dtypes and static values. Under one key there is a path for
each way the function's Python went; a path whose guard fails gives way to the next, and a new way is captured.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as onp

from ... import backends, errors
from ..arrays import devices
from ..arrays.array import ARRAY_TYPES, array_of, numpys_own, of_subclass, read
from ..arrays.hooks import unread
from ..arrays.writing import SHARED, write
from ..compiled import Dispatch, fastpath
from ..cpu.products import single_thread
from ..cpu.threads import user_level
from ..graph.capture import SEVERAL, Captured, Discarded, arrays_refused, capture_call, copied
from ..graph.closures import Before, bindings, goes_on, is_root, raised_by, unfollowed
from ..graph.effects import Diverged
from ..graph.graph import Graph
from ..graph.interpreter import blame
from ..graph.outputs import as_returned, containers
from ..graph.scalars import NUMBERS, Live, refused, types_asked
from ..graph.signature import TYPED, Static, changes, exactly, guard_of, kind
from ..llvm import engine as native
from ..loops import CLOSURES, LISTS, RAN, fills_lists, followed, staged, unrolled, whole
from ..passes import optimize
from ..rows import policy
from ..rows.error_state import asked
from ..rows.on_device import free
from ..rows.pytree import all_besides, of_containers, open_tree, tree_flatten
from ..rows.report import record
from ..rows.state import capture, state
from ..rows.value import OBJECTS, STREAMS, Buffer, Host, Tracer, holds_objects
from ..transforms.grad import by_name, compiling, function_of, without
from .specialisation import Specialisation, apart, steps_back

TRIES = 2  # captures that changed something outside, after which a function is not compiled any more
WAYS = 4  # captures in a row that found others than those before, of functions that seem to take few ways
KEYS = 8  # keys whose captures all ended before the function did, after which it is not captured for others
IDLE = 4  # calls in a row in which no loop ran compiled, after which Python runs the function
MANY_PATHS = 3  # to tell so many apart is timed
TIMED, PLAIN, WORTH = 12, 4, 20e-6  # so many calls by paths, and of the function, where a call takes such seconds
BRIEF = 1e-4  # seconds of a call of loops, or of branches, that may take longer than the function
SHORT = 2e-4  # seconds of a call with compiled loops, from which on the function as it is is not tried beside it
FEW = 4  # calls by a path of unrolled loops that are timed
OFTEN, TURNS = 32, 8  # calls after which a function may be captured as one program; so many of either kind are timed
LONGER, LONG_CALL = 4, 0.1  # a call of the function that takes so many times as long, and such seconds, is no way
LIMIT = 32  # paths per key, and keys per function, before jit says that a function keeps making new ones


CONTAINERS, LONG = (list, tuple, dict), 32  # and how many items an argument has that may have too many to look at
P = ParamSpec("P")
R = TypeVar("R")
COMPILERS = ("auto", "llvm", "numpy", *backends.names())


def unfit(error: BaseException | None) -> str:
    """Why the function may raise for traced arrays alone; "" for most exceptions."""
    if said := arrays_refused(error):
        return f"what is written in C wants NumPy's own arrays: {said}"
    library = raised_by(error)
    return f"{library} does not take traced arrays: {error}" if library else ""


class Missed:
    """No compiled path holds for a call; `error` is what one of them raised."""

    __slots__ = ("error",)

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class Plain:
    """A function that no graph holds, for arguments of one key: whether Python runs its loops, too.

    `plan` is for the C part (dispatch.hpp), as a specialisation's: a graph of nothing, and then the function.
    """

    def __init__(self, run: Callable) -> None:
        self.idle = self.rest = self.slow = 0
        self.usual = 0.0
        self.by_loops: list[float] = []
        self.python: list[float] = []
        finish = lambda out, given, arguments: run(*arguments)
        self.plan = None if fastpath is None else fastpath.plan(tuple, finish, {}, (), (), (), ..., (), ())
        self.paths = [self]

    def took(self, seconds: float, looked: bool, ran: bool) -> None:
        """A call did; whether its loops were looked at, and one ran compiled."""
        if looked or self.rest:
            self.rests_after(seconds, looked, ran)
            if ran and looked and len(self.by_loops) < TIMED:
                self.by_loops.append(seconds)
        elif self.tries():
            self.python.append(seconds)
            if len(self.python) == PLAIN and min(self.python) < min(self.by_loops):
                self.slow += 1
                self.rest, self.usual = TIMED << min(self.slow, 10), max(self.python)
                self.by_loops, self.python = [], []

    def rests_after(self, seconds: float, looked: bool, ran: bool) -> None:
        """Sets in how many of the next calls no loop is looked at. Of a call that raised, nothing else is known."""
        if looked:
            self.idle = 0 if ran else self.idle + 1
            self.usual = seconds
            if self.idle > IDLE:
                self.rest = 1 << min(self.idle - IDLE, 10)
        elif self.rest:
            self.rest = self.rest - 1 if seconds < self.brief() else 0

    def tries(self) -> bool:
        """Whether the next call is the function's as it is, timed: to look at loops of few turns takes longer than they
        do, above all where a function calls itself."""
        if len(self.by_loops) < TIMED or len(self.python) == PLAIN:
            return False
        least = min(self.by_loops)
        return least < SHORT and (not self.python or self.python[-1] < LONGER * least)

    def brief(self) -> float:
        """The seconds of a call that is not given more to do."""
        return 4 * self.usual + 1e-5

    def rest_in_c(self, most: int) -> int:
        """Leaves to the C part calls to come in which no loop is looked at, `most` at most; how many."""
        count = min(self.rest, most) if self.plan.rest == 0 else 0
        if count:
            self.plan.rest, self.plan.brief, self.rest = count, self.brief(), self.rest - count
        return count

    def rests(self) -> bool:
        return self.rest > 0 or (self.plan is not None and self.plan.rest > 0)


class Trial:
    """Whether compiled calls take longer than the function itself, to tell many paths apart or for what they do: some
    calls of either kind are timed.

    doubtful   what may take longer (Specialisation): every call is seen, by the C part none; "" where paths are many
    brief      whether it is doubtful in calls alone that take less than BRIEF: those of a few turns, or numbers
    loops      whether it is for what its loops do
    """

    def __init__(self, calls: int, paths: int, doubtful: str = "", brief: bool = False, loops: bool = False) -> None:
        self.calls, self.paths, self.doubtful, self.brief = calls, paths, doubtful, brief
        self.timed = FEW if doubtful else TIMED
        self.most = 3 * PLAIN if loops else PLAIN  # the function's loops, too, are timed beside Python meanwhile
        self.by_paths: list[float] = []
        self.plain: list[float] = []

    def runs_plain(self, calls: int) -> bool:
        """Whether the next call is one of the function as it is."""
        worth = bool(self.doubtful) or self.usual(calls) > WORTH
        return worth and len(self.by_paths) >= self.timed and self.open()

    def open(self) -> bool:
        """Whether more calls are to be timed."""
        long = self.plain and self.plain[-1] > max(LONG_CALL, LONGER * min(self.by_paths))
        known = self.brief and len(self.by_paths) >= self.timed and min(self.by_paths) > BRIEF
        return len(self.plain) < self.most and not long and not known

    def usual(self, calls: int) -> float:
        """The seconds of a call: of many paths, those that the C part serves, by the path that held last, take hardly
        any."""
        return min(self.by_paths) if self.doubtful else sum(self.by_paths) / max(calls - self.calls, 1)

    def ends(self, calls: int) -> bool:
        usual = self.usual(calls)
        # the C part, which serves later calls, takes less than what is timed here
        clear = 2 if self.brief or (self.doubtful and usual <= WORTH) else 1
        return len(self.plain) == self.most and clear * min(self.plain) < usual

    def why(self) -> str:
        """What is said of paths that take longer."""
        if not self.doubtful:
            return f"to tell its {self.paths} paths apart takes longer than the function"
        compiled, plain = (1e3 * min(x) for x in (self.by_paths, self.plain))
        return f"{self.doubtful} take {compiled:.2g} ms compiled and {plain:.2g} ms in Python"


class Contest:
    """Whether a function of short calls is faster as one program than as the steps of its graph: once it was called
    often it is captured as one, too, and calls of either kind are timed by turns. What is faster is compiled well.

    whole    the path that is one program, if there is one
    over     whether it is known
    """

    def __init__(self) -> None:
        self.whole: list[Specialisation] = []
        self.over = self.captured = False
        self.steps: list[float] = []  # seconds of calls
        self.program: list[float] = []

    def begins(self) -> bool:
        """Whether the next call is captured."""
        if self.captured or len(self.steps) < OFTEN:
            return False
        self.captured, self.over = True, min(self.steps) > SHORT
        self.steps.clear()
        return not self.over

    def took(self, seconds: float, whole: bool) -> bool:
        """A call did. Whether the program is found to be faster."""
        (self.program if whole else self.steps).append(seconds)
        if self.over or min(len(self.program), len(self.steps)) < TURNS:  # other threads may have timed more
            return False
        self.over = True
        return self.faster()

    def faster(self) -> bool:
        return min(self.program) < min(self.steps)


def _of_function(name: str, do: Callable) -> Callable:
    return lambda self, *value: do(self.function, name, *value)


class Jitted(Dispatch, Generic[P, R]):
    """A compiled function; made by `jit`."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __init__(self, f: Callable, limit: int, compiler: str = "auto", static: Sequence[str | int] = ()) -> None:
        functools.update_wrapper(self, f, updated=())
        self.function, self.limit, self.compiler = f, limit, compiler
        self.static, self.typed = places_and_names(f, static), types_asked(f)
        self.paths: dict[Any, list[Specialisation]] = {}
        # by the key without them: numbers whose values, arrays whose layout matters
        self.fixed: dict[Any, set[int]] = {}
        self.last: dict[Any, dict[int, Any]] = {}  # what these were at the last capture,
        self.varied: dict[Any, set[int]] = {}  # and which of them are indices that change
        self.warned = False  # that there are too many paths
        self.as_one: set = set()  # keys of functions with lists in loops, which are captured as one program
        self.ended: set = set()  # keys whose captures end before the function does: it runs as it is
        self.useless: dict[Any, int] = {}  # by key: how many captures in a row raised, or found a path that missed
        self.captured_at: dict[Any, int] = {}  # by key: how many calls there were at its last capture
        self.waiting: dict[Any, int] = {}  # by key: how many calls are not captured for that
        self.trials: dict[Any, Trial] = {}  # of those that have many paths
        self.contests: dict[Any, Contest] = {}  # of those that have steps besides their loops
        self.plain: dict[Any, Plain] = {}  # by key: whether the loops are looked at
        # how -> (of which code and defaults, the function with its loops compiled so)
        self.made: dict[Any, tuple[list, Any]] = {}
        self.calls = self.captures = self.guard_failures = self.changing = 0

    # whoever replaces a function's defaults replaces those of the function that is run
    __defaults__ = property(*[_of_function("__defaults__", f) for f in (getattr, setattr)])
    __kwdefaults__ = property(*[_of_function("__kwdefaults__", f) for f in (getattr, setattr)])
    # by these, inspect knows a function: its parameters, whether it is a coroutine's
    __code__ = property(lambda self: self.function.__code__)
    __globals__ = property(lambda self: self.function.__globals__)
    __closure__ = property(lambda self: self.function.__closure__)
    __isabstractmethod__ = property(lambda self: getattr(self.function, "__isabstractmethod__", False))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return by_name(self) or (Jitted, (self.function, self.limit, self.compiler, tuple(self.static)))

    def __repr__(self) -> str:
        return f"<jit of {getattr(self.function, '__qualname__', self.function)}>"

    def general(self, args: tuple, kwargs: dict, raised: tuple[Specialisation, Exception] | None = None) -> Any:
        """What a call returns. `raised`: what a path that was run already raised."""
        if self.plain and any(type(a) in CONTAINERS and len(a) > LONG for a in args) and self._rests():
            return self._uncaptured(None, args, kwargs)  # to look at every item would take longer than the function
        if Live in map(type, (*args, *kwargs.values())):  # of a capture that ended: numbers again
            args, kwargs = tuple(map(_number_of_ended, args)), {k: _number_of_ended(v) for k, v in kwargs.items()}
        if state.raising and asked():  # compiled code tells of no floating-point error
            return self._eager(args, kwargs)
        out = None
        leaves: list = []
        marked = self._marked(args, kwargs) if self.static else (args, kwargs)
        try:
            shape = open_tree(marked, leaves)
        except RecursionError:
            self._reports("an argument contains itself")
            return self._eager(args, kwargs)
        values = [read(x) if type(x) in ARRAY_TYPES else numpys_own(x) for x in leaves]
        backend = None
        if any(type(v) is Tracer or (type(v) is Buffer and steps_back(x, v)) for x, v in zip(leaves, values)):
            values = None  # type: ignore[assignment]  # the memory of what the function writes to is the caller's alone
            return self._eager(args, kwargs, followed)  # another transformation runs it row by row
        for v in values:
            if type(v) is Buffer:
                backend = v.backend
            elif of_subclass(v) or (isinstance(v, Host) and v.dtype.kind in "US"):
                return self.function(*args, **kwargs)  # a subclass, whose operators are its own; or texts
            elif holds_objects(v):
                self._reports(OBJECTS)
                return self._eager(args, kwargs)
        if state.busy or backend is not None:
            if capture.get() is not None or (backend is not None and not free(backend)):
                return self.function(*args, **kwargs)
            if backend is None and self.compiler == "auto" and policy.current().backend is not None:
                backend = backends.get(policy.current().backend)
        backend = backends.get(self.compiler) if backend is None and self.compiler in backends.names() else backend
        if len(self.ended) > KEYS and not any(self.paths.values()):
            return self._uncaptured(None, args, kwargs)
        key = (shape, *map(kind, values), devices.default_device(), backend)
        fixed = self.fixed.setdefault(key, set())
        exact = exactly(key, fixed, values)
        paths = self.paths.get(exact)
        if paths:
            judged = self.compiler == "auto" and backend is None
            contest = self._contest(exact, paths) if judged else None
            doubtful = next((p for p in paths if p.doubtful), None) if judged else None
            if contest is not None and doubtful is not None and doubtful.brief:
                doubtful = None  # once it is known how it is fastest
            trial = self._trial(exact, len(paths), doubtful) if doubtful or len(paths) >= MANY_PATHS else None
            if trial is not None and trial.open():
                out = self._tried(trial, key, exact, paths, values, leaves, args, kwargs, raised)
            elif contest is not None:
                out = self._contested(contest, key, exact, marked, paths, values, leaves, args, kwargs, raised)
            else:
                out = self._run(paths, values, leaves, args, kwargs, raised)
            if type(out) is not Missed:
                watched = contest is not None  # and its loops may be doubtful, after it
                watched |= trial is not None and bool(trial.doubtful) and trial.open()
                if self.paths.get(exact) is paths and not watched:
                    self._remember(shape, paths, fixed, values)
                return out
        known = len(fixed)
        try:
            out = self._capture(key, exact, marked, leaves, values, args, kwargs)
        except Exception as error:
            failed = out.error if type(out) is Missed else None
            if type(failed) is type(error) or (failed is not None and isinstance(error, errors.CaptureError)):
                for note in getattr(failed, "__notes__", ()):  # the node that failed, and its line
                    error.add_note(note)
            raise
        if len(fixed) > known:
            self.forget()
        return out

    def _rests(self) -> bool:
        """Whether no graph holds the function, and none of its loops ran compiled when they were looked at."""
        return any(p.rests() for p in self.plain.values()) and not any(self.paths.values())

    def _remember(self, shape: Any, paths: list, fixed: set[int], values: list, ended: bool = False) -> None:
        """Let later calls with such arguments, arrays and numbers in containers, run these paths at once. `ended`: with
        any random stream (`of_any_stream`)."""
        if self.static or state.busy or paths[0].plan is None or len(values) > fastpath.MOST_GUARDED:
            return
        given, named = shape[2]
        if named[2] or not of_containers(given):
            return
        any_of_type = lambda v: (TYPED, type(v), (), (), False) if ended and isinstance(v, STREAMS) else None
        guards = [any_of_type(v) or guard_of(v, i in fixed) for i, v in enumerate(values)]
        if None not in guards:
            self.remember(given, guards, paths)

    def _eager(self, args: tuple, kwargs: dict, make: Any = staged) -> Any:
        """The function as it is, but for its loops."""
        if self.compiler not in ("auto", "llvm"):
            return self.function(*args, **kwargs)
        token = compiling.set(True)
        try:
            return self._made(make, args, kwargs)
        finally:
            compiling.reset(token)

    def _staged(self, *args: Any, **kwargs: Any) -> Any:
        """The function with its loops compiled."""
        return self._made(staged, args, kwargs)

    def _made(self, make: Any, args: tuple, kwargs: dict) -> Any:
        """make(the function), called: `staged`, or `followed`."""
        inner = getattr(self.function, "__func__", self.function)
        of = [getattr(inner, fact, None) for fact in ("__code__", "__defaults__", "__kwdefaults__")]
        kept, made = self.made.get(make, ((), None))
        if made is None or any(a is not b for a, b in zip(of, kept)):
            made = make(self.function)
        forget = getattr(made, "forget", None)
        if forget is None:
            return made(*args, **kwargs)
        self.made[make] = of, made
        try:
            return made(*args, **kwargs)
        finally:
            forget()

    def _as_one(self, *args: Any, **kwargs: Any) -> Any:
        """The function as one program where it can be one."""
        return (whole(self.function) or self._staged)(*args, **kwargs)

    def _uncaptured(self, key: Any, args: tuple, kwargs: dict) -> Any:
        """`_eager`; after calls in which no loop ran compiled, the function as it is, for so many of them again."""
        plain = self.plain.get(key)
        if plain is None:
            plain = self.plain[key] = Plain(lambda args, kwargs: self._waited(key, args, kwargs))
        before, began = RAN[0], perf_counter()
        looks = not (plain.rest or plain.tries())
        try:
            out = self._eager(args, kwargs) if looks else self.function(*args, **kwargs)
        except Exception:  # of a loop that raises soon, to look at it takes longer than Python
            seconds = perf_counter() - began
            plain.rests_after(seconds, looks, RAN[0] != before or seconds > BRIEF)
            raise
        plain.took(perf_counter() - began, looks, RAN[0] != before)
        return out

    def _waited(self, key: Any, args: tuple, kwargs: dict) -> Any:
        """`_uncaptured`, called by the C part, also while captures wait."""
        waits = self.waiting.get(key, 0) > 0  # threads may have counted one call too much
        if waits:
            self.waiting[key] -= 1
            self.calls -= 1  # which it counted as one that a path was found for
            if not self.waiting[key]:
                self.forget()
        out = self._uncaptured(key, args, kwargs)
        left, plain = self.waiting.get(key, 0), self.plain.get(key)  # it may have called or cleared this
        if plain is not None:
            count = plain.rest_in_c(max(left - 1, 0) if waits else plain.rest)
            if waits:
                self.waiting[key] = left - count
            else:
                self.calls += count
        return out

    def _marked(self, args: tuple, kwargs: dict) -> tuple:
        """The arguments, each static one a leaf that its value identifies."""
        args = tuple(Static(a) if i in self.static else a for i, a in enumerate(args))
        return args, {k: Static(a) if k in self.static else a for k, a in kwargs.items()}

    def _trial(self, exact: Any, paths: int, doubtful: Specialisation | None) -> Trial:
        """What was timed of so many paths."""
        trial = self.trials.get(exact)
        if trial is None or paths >= 2 * trial.paths:
            facts: tuple = ()
            if doubtful is not None and paths < MANY_PATHS:
                facts = doubtful.doubtful, doubtful.brief, not (doubtful.brief or doubtful.unrolled)
            trial = self.trials[exact] = Trial(self.calls, paths, *facts)
        return trial

    def _tried(self, trial: Trial, key: Any, exact: Any, paths: list, values: list, leaves: list, *call: Any) -> Any:
        """`_run` while it is timed, or, once that was found to take no longer, the function as it is."""
        plain, began = trial.runs_plain(self.calls), perf_counter()
        if plain:
            out = self.function(*call[0], **call[1]) if trial.brief else self._uncaptured(key, *call[:2])
        else:
            out = self._run(paths, values, leaves, *call)
        if type(out) is not Missed:
            (trial.plain if plain else trial.by_paths).append(perf_counter() - began)
            if trial.ends(self.calls):
                self._ends(exact if trial.doubtful else key, trial.why())
                self.paths[exact] = []  # another thread may still go through the others
                self.forget()
        return out

    def _contest(self, exact: Any, paths: list[Specialisation]) -> Contest | None:
        """What is to be timed of a function that may be one program; None if nothing is."""
        contest = self.contests.get(exact)
        if contest is None and paths[0].divided and not paths[0].streams:
            contest = self.contests[exact] = Contest()
        return None if contest is None or contest.over or len(paths) > 1 else contest

    def _contested(
        self, contest: Contest, key: Any, exact: Any, marked: tuple, paths: list, values: list, leaves: list, *call: Any
    ) -> Any:
        """`_run` while it is timed, by turns with that of the whole function."""
        if contest.begins():
            out = self._capture(key, exact, marked, leaves, values, *call[:2], whole=contest.whole)
            contest.over = not contest.whole
            return out
        whole, began = bool(contest.whole) and len(contest.program) < len(contest.steps), perf_counter()
        out = self._run(contest.whole if whole else paths, values, leaves, *call)
        if type(out) is Missed:
            contest.over = whole
            return self._run(paths, values, leaves, *call) if whole else out
        if contest.took(perf_counter() - began, whole):
            paths[:] = [*contest.whole, *paths]
        return out

    def _run(
        self,
        paths: list[Specialisation],
        values: list,
        leaves: Sequence[Any],
        args: tuple,
        kwargs: dict,
        raised: tuple[Specialisation, Exception] | None = None,
    ) -> Any:
        """The result by the first path whose guards hold; Missed if none does, or one raised: the function itself may
        catch what it raises, and has to say so from its own lines if it does not."""
        failed: Exception | None = None
        for path in paths:
            captured, at = path.captured, path.inputs
            # a path takes a number that was fixed because of what it captured; later ones know better
            given = arrays = values if len(at) == len(values) else [values[i] for i in at]
            if captured.written and not path.apart(arrays):
                return self.function(*args, **kwargs)  # what it writes to one argument, it reads from another
            if path.overwrites and (state.busy or state.tapes or not path.may_overwrite(arrays)):
                given = [a.copy() if i in path.overwrites else a for i, a in enumerate(arrays)]
            drawn = path.streams and [stream.state for stream in path.streams]
            try:
                if raised is not None and raised[0] is path:
                    raise raised[1]
                out = path.run(*given) if path.alone is None else path.quietly(*given)
            except Diverged:
                for stream, before in zip(path.streams, drawn):
                    stream.state = before
                if path.environment is not None and path.environment.follow():
                    return self._run(paths, values, leaves, args, kwargs)
                self.guard_failures += 1
                continue
            except Exception as error:
                blame(error, path.run, path.run.nodes)
                restored = hasattr(error, "partial")  # by a loop that failed: nothing is written before one
                if path.overwrites and given is arrays and not restored:  # they may be written already
                    raise
                for stream, before in zip(path.streams, drawn):
                    stream.state = before
                failed = error
                continue
            self.calls += 1
            if path is not paths[0]:  # what held last is tried first
                paths[:] = [path, *(p for p in paths if p is not path)]
            if captured.written:
                if captured.splits((args, kwargs)):
                    return self.function(*args, **kwargs)
                n = len(out) - len(captured.written)
                for i, final in zip(captured.written, out[n:]):
                    if final is not arrays[i]:  # what lies in its place already is not written again
                        self.write_back(leaves[at[i]], final)
                out = out[:n]
            return path.finish(out, [leaves[i] for i in at] if captured.shown else (), (args, kwargs))
        return Missed(failed)

    def write_back(self, target: Any, final: Any) -> None:
        """Give an argument the values that the function wrote to it."""
        final = array_of(final)
        if target.shape != final.shape:  # set by the function
            target.shape = final.shape
        if unread(type(target)):
            target[:] = final.asnumpy()
        else:
            write(target if type(target) in ARRAY_TYPES else array_of(target), ..., final)

    def _capture(
        self,
        key: Any,
        exact: Any,
        marked: tuple,
        leaves: list,
        values: list,
        args: tuple,
        kwargs: dict,
        whole: list[Specialisation] | None = None,
    ) -> Any:
        """The result of a call that is captured, as a rule. `whole`: where a path goes that is the whole function as
        one program, if it can be one; nothing else is kept of such a capture."""
        ended = of_any_stream(key)
        if self.changing > TRIES or ended in self.ended or exact in self.ended:
            out = self._uncaptured(ended, args, kwargs)
            if ended in self.ended or exact in self.ended:
                self._remember(key[0], self.plain[ended].paths, self.fixed.get(key, set()), values, True)
            return out
        if self.waiting.get(key, 0) > 0:
            self.waiting[key] -= 1
            try:
                return self._uncaptured(key, args, kwargs)
            finally:  # of what it raises, too, later calls are served by the C part
                plain = self.plain.get(key)
                if self.waiting.get(key, 0) > 0 and self.useless.get(key, 0) > TRIES + 1 and plain is not None:
                    self._remember(key[0], plain.paths, set(), values)
        if not self.captures and ended not in self.as_one and unrolled(self.function):
            out = self._eager(args, kwargs)
            if name := unrolled(self.function):  # what it calls did not become a program
                self._ends_unless_one(key, f"{name} calls itself", True)
                self.paths.setdefault(exact, [])
            return out
        # another thread may have cleared them
        names, fixed, backend = leaf_names(self.function, *marked), self.fixed.setdefault(key, set()), key[-1]
        before = Before()
        held, classes = all_besides(marked)
        roots = tuple([v for v in (*values, *held) if is_root(v)])
        found = bindings(self.function, roots, before, classes)
        own = next(
            (p.value for p in found if p.asked and (of_subclass(p.value) or isinstance(p.value, onp.memmap))), None
        )
        changes_unseen = next((v for v in roots if unfollowed(v)), None)
        given = {id(container) for _, container, _ in containers((args, kwargs))}
        twice = next((p.value for p in found if id(p.value) in given), None)
        why = ""
        if own is not None:
            why = f"the function reads a {type(own).__name__} outside, whose operators are its own"
        elif changes_unseen is not None:
            why = f"a {type(changes_unseen).__name__} is among its arguments, which nothing tells changes of"
        elif before.unknown:
            why = f"what {before.unknown} is not known from the function's code"
        elif twice is not None:  # a capture has its own copies of the containers among arguments
            why = f"a {type(twice).__name__} among its arguments is one that it reads outside, too"
        if why:
            self._ends(key, why)
            return self._uncaptured(key, args, kwargs)
        asks = lambda v, name: before.types or name in self.typed or (before.kinds and isinstance(v, onp.floating))
        asked = {i for i, v in enumerate(values) if changes(v) and asks(v, names[i])}
        last = self.last.setdefault(key, {})
        other = lambda i: type(values[i]) is type(last.get(i)) is int and values[i] != last[i]
        moved = {i for i in fixed - asked if other(i)}
        last.update({i: values[i] for i in fixed})
        asked -= fixed
        if asked:
            fixed |= asked
            exact = exactly(key, fixed, values)
        paths = self.paths.setdefault(exact, []) if whole is None else whole
        if (before.types or before.kinds or self.typed) and len(self.paths) > self.limit:
            self.ended.add(of_any_stream(key))
            return self._uncaptured(key, args, kwargs)
        if len(paths) >= self.limit or len(self.paths) > self.limit:
            self._gives_up(key, len(paths) >= self.limit)
            return self._uncaptured(key, args, kwargs)
        _, rebuild = tree_flatten(marked)
        live = {i for i, v in enumerate(values) if (i not in fixed or i in moved) and changes(v)}
        unfinished: list = []
        replaces = any(type(values[i]) in NUMBERS for i in live)
        try:
            with self._quietly(backend):
                fast = self.compiler in ("auto", "llvm")
                in_loops = self._staged if whole is None and ended not in self.as_one else self._as_one
                captured, parts, written = capture_call(
                    in_loops if fast and backend is None else self.function,
                    values,
                    rebuild,
                    names,
                    live,
                    unfinished,
                    fast,
                    may_leave=True,
                    callers=(leaves, (args, kwargs)),
                    discards=lambda error: NUMBERS if replaces and refused(error) else unfit(error),
                    outside=found,
                    watches=before.writes,
                    catches=before.catches,
                    varied=moved | self.varied.get(key, set()),
                )
        except Discarded as discarded:
            before.restore()
            for binding in found:
                binding.restore()
            if whole is not None:
                return self._uncaptured(key, args, kwargs)
            if discarded.why is not NUMBERS:
                try:
                    out = self._uncaptured(key, args, kwargs)
                except BaseException:  # for NumPy's arrays as well
                    self._of_no_use(key)
                    raise
                self._ends_unless_one(key, discarded.why)
                return out
            wanted = {i for i in live if type(values[i]) in NUMBERS}  # what it called wants the numbers themselves
            fixed |= wanted
            last.update(dict.fromkeys(wanted))
            return self._capture(key, exactly(key, fixed, values), marked, leaves, values, args, kwargs)
        except BaseException:
            self._of_no_use(key)
            inputs = _inputs(values, live)
            if unfinished:
                captured, parts, written = unfinished
                if captured.written and not apart(captured.written, [values[i] for i in inputs], {}):
                    return self.function(*args, **kwargs)
                self._give(captured, parts, written, [leaves[i] for i in inputs], (args, kwargs))
            raise
        self.calls += 1
        inputs = _inputs(values, live)
        given = [leaves[i] for i in inputs]
        stays = not captured.keeps and before.stays() and all(p.stays() or p.counted for p in found)
        if whole is not None:
            if stays and not captured.left and not captured.fixed - fixed and not any(map(goes_on, parts)):
                path = Specialisation(captured, inputs, self.compiler, backend, [p for p in found if p.stays()])
                whole += [path] if not path.divided and path.loops else []
            if captured.written and not apart(captured.written, [values[i] for i in inputs], captured.constants):
                return self.function(*args, **kwargs)
            return self._give(captured, parts, written, given, (args, kwargs))
        if captured.left or not stays or any(map(goes_on, parts)):
            if captured.ended:
                self._ends_unless_one(key, captured.left)
            elif captured.left != SHARED:
                self.changing += 1
            if captured.written and not apart(captured.written, [values[i] for i in inputs], captured.constants):
                return self.function(*args, **kwargs)
            return self._give(captured, parts, written, given, (args, kwargs))
        self.captures += 1
        if indices := moved - captured.fixed:  # the paths of single ones are served by this one
            self.varied.setdefault(key, set()).update(indices)
            fixed -= indices
            for exactly_known in [k for k in list(self.paths) if k[0] == key]:
                self.paths.pop(exactly_known, None)
            self.useless.pop(key, None)
            paths = self.paths.setdefault(exactly(key, fixed, values), [])
            self.forget()
        last.update({i: values[i] for i in captured.fixed})
        if captured.fixed:  # Python read these numbers: others compile again
            fixed |= captured.fixed
            if not paths:
                self.paths.pop(exact, None)
            paths = self.paths.setdefault(exactly(key, fixed, values), [])
        known = next((p for p in paths if p.finds(captured) and (anew := p.follows()) is not None), None)
        if known is not None and not anew:  # compiled code rounds otherwise, and its guards see that
            self._of_no_use(key)
        elif self.calls == self.captured_at.get(key, self.calls - 1) + 1:
            # no call since then took a way, or had numbers, that are known: of few ways each may be taken once
            self._of_no_use(key, TRIES if fixed or captured.bits() > SEVERAL else WAYS)
        else:
            self.useless.pop(key, None)
        self.captured_at[key] = self.calls
        stays = [p for p in found if p.stays()]
        path = known or Specialisation(captured, inputs, self.compiler, backend, stays, hurries=True)
        if path is not known and path.late:
            self._reports(f"machine code of {path.doubtful} would take too long to make: NumPy runs them")
        paths[:] = [path, *(p for p in paths if p is not path)]  # at once: other threads may look meanwhile
        if captured.written and not path.apart([values[i] for i in inputs]):
            return self.function(*args, **kwargs)
        return self._give(captured, parts, written, given, (args, kwargs))

    def _reports(self, why: str) -> None:
        """Say in minnp.report() why the function runs as it is."""
        record(f"jit of {getattr(self.function, '__qualname__', '')}", "python", 0.0, (), why)

    def _ends(self, key: Any, why: str) -> None:
        """From now on the function runs as it is for such arguments (a key, or one with the numbers that are fixed);
        those of known paths may still be served."""
        self.ended.add(of_any_stream(key))
        self._reports(why)

    def _ends_unless_one(self, key: Any, why: str, recursive: bool = False) -> None:
        """`_ends`, but for a function with lists in loops, or that calls one that calls itself: the next call captures
        it as one program, which has them."""
        ended = of_any_stream(key)
        if ended not in self.as_one and (recursive or why in (LISTS, CLOSURES) or fills_lists(self.function)):
            self.as_one.add(ended)
        else:
            self._ends(key, why)

    def _of_no_use(self, key: Any, tries: int = TRIES) -> None:
        """After some captures that raised, or that found what is known, the next waits, each time twice as long. If
        none of the calls of the first wait took a known path, later ones are not asked whether they do."""
        n = self.useless[key] = self.useless.get(key, 0) + 1
        self.waiting[key] = 1 << min(n, 16) if n > tries else 0
        if self.waiting[key] and n > TRIES + 1:
            self.forget()

    def _gives_up(self, key: Any, branches: bool) -> None:
        """From now on the function runs as it is for arguments of which no path is known."""
        what = "paths through its Python" if branches else "combinations of shapes and static values"
        why = f"met {self.limit} different {what}"
        self._ends(key, why)
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"{self!r}{_defined_at(self.function)} has {why} and runs others as they are; pass numbers that keep "
                "changing as arrays, use np.where for branches on data, or raise jit(..., limit=)",
                errors.RecompilationWarning,
                stacklevel=user_level(),
            )

    def _give(self, captured: Captured, parts: list, written: list, given: list, arguments: Any) -> Any:
        """The result of a captured call, and to the caller's arguments what the function did to them."""
        if captured.written and captured.splits(arguments):  # where nothing is written, `result` asks
            return self.function(*arguments[0], **arguments[1])
        for i, final in zip(captured.written, written, strict=True):
            self.write_back(given[i], final)
        return captured.result(parts, given, arguments)

    @contextlib.contextmanager
    def _quietly(self, backend: Any) -> Iterator[None]:
        quiet = contextlib.nullcontext() if self.compiler == "numpy" else single_thread() or contextlib.nullcontext()
        with quiet, policy.on_host(self.compiler != "auto" and backend is None):
            yield

    # -------------------------------------------------------------- looking inside
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Capture (or find) the path of these arguments without keeping its result: .graph, .code, .flops()."""
        arguments = self._marked(args, kwargs)
        leaves, rebuild = tree_flatten(arguments)
        values = [copied(x) for x in leaves]
        live = {i for i, v in enumerate(values) if changes(v)}
        loops = self.compiler in ("auto", "llvm")
        f = staged(self.function) if loops else self.function
        captured, *_ = capture_call(f, values, rebuild, leaf_names(self.function, *arguments), live, loops=loops)
        return Lowered(captured, self.compiler)

    def cache_info(self) -> dict[str, int]:
        """Counts: calls, captures, guard_failures, keys, paths."""
        return {
            "calls": self.calls,
            "captures": self.captures,
            "guard_failures": self.guard_failures,
            "keys": len(self.paths),
            "paths": sum(map(len, self.paths.values())),
        }

    def measured(self) -> list[dict[str, float]]:
        """For each path compiled for torch, the seconds of the ways to run it that were tried, the chosen one first."""
        return [path.run.measured() for paths in self.paths.values() for path in paths if hasattr(path.run, "measured")]

    def clear_cache(self) -> None:
        """Forget every compiled path, and which calls are not compiled: as if nothing had been called yet."""
        for known in (self.paths, self.trials, self.fixed, self.last, self.varied, self.useless, self.captured_at):
            known.clear()
        for known in (self.ended, self.as_one, self.waiting, self.plain, self.contests):
            known.clear()
        self.forget()


class Lowered:
    """A captured path, to look at."""

    def __init__(self, captured: Captured, compiler: str) -> None:
        self.graph: Graph = optimize(captured.graph.copy())
        self._path = lambda: Specialisation(captured, (), compiler)
        self._returning = lambda: as_returned(self.graph.copy(), captured)

    def __repr__(self) -> str:
        return f"<lowered graph of {len(list(self.graph.nodes))} nodes: .code, .source and .flops show it>"

    @property
    def source(self) -> str:
        """The Python that jit runs."""
        return self._path().run.source

    @property
    def code(self) -> str:
        """The graph as Python in minnp.numpy, returning what f does; with what f wrote, where it wrote, in a tuple."""
        return self._returning().code

    def flops(self) -> int:
        """Floating point operations of one run, by the rows' own counts."""
        from ..passes import flops

        return flops(self.graph)


def places_and_names(f: Callable, static: Sequence[str | int]) -> set:
    """The static arguments by place and by name, however they were written. Raises ValueError for a name f lacks."""
    static = (static,) if isinstance(static, (str, int)) else tuple(static)
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return set(static)
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    found = set(static)
    for s in static:
        if type(s) is str:
            if s not in names and names:
                raise ValueError(f"jit(static={s!r}): the function's arguments are {', '.join(names)}")
            found.add(names.index(s))
        elif s < len(names):
            found.add(names[s])
        elif not variadic:
            raise ValueError(f"jit(static={s!r}): the function's arguments are {', '.join(names)}")
    return found


def of_any_stream(key: tuple) -> tuple:
    """A key in which a random stream may be any of its class: programs make one for each call."""
    return tuple([x[0] if type(x) is tuple and len(x) == 2 and isinstance(x[1], STREAMS) else x for x in key])


def _number_of_ended(x: Any) -> Any:
    return x.value if type(x) is Live and not x.trace.alive else x


def _inputs(values: Sequence[Any], live: set[int]) -> list[int]:
    """The leaves that are inputs of the graph."""
    return [i for i, v in enumerate(values) if i in live or isinstance(v, (Host, Buffer))]


def leaf_names(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A readable name for every leaf: the parameter's, numbered where it is a tree."""
    try:
        bound = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        bound = []
    out = []
    for i, a in enumerate(args):
        n = len(tree_flatten(a)[0])
        base = bound[i] if i < len(bound) else f"x{i}"
        out += [base] if n == 1 else [f"{base}_{j}" for j in range(n)]
    for k, a in kwargs.items():
        n = len(tree_flatten(a)[0])
        out += [k] if n == 1 else [f"{k}_{j}" for j in range(n)]
    return out


def _defined_at(f: Any) -> str:
    code = getattr(f, "__code__", None)
    return f", defined at {code.co_filename}:{code.co_firstlineno}," if code else ""


@overload  # type checkers would take the first of a ufunc's own signatures alone
def jit(f: onp.ufunc, *args: Any, **options: Any) -> Jitted[..., Any]: ...
@overload
def jit(
    f: Callable[P, R],
    *,
    limit: int = LIMIT,
    compiler: str = "auto",
    static: str | int | Sequence[str | int] = (),
) -> Jitted[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    limit: int = LIMIT,
    compiler: str = "auto",
    static: str | int | Sequence[str | int] = (),
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@without(
    static_argnums="static= takes places as well as names",
    static_argnames="static= takes names as well as places",
    donate_argnums="memory that nobody reads any more is used again by itself",
    backend="compiler= says what the graph is compiled for",
    device="it runs where its arguments are: x.to_device(device)",
    nopython="minnp.report() lists the loops that stay Python",
    fullgraph="minnp.report() lists the loops that stay Python",
)
def jit(
    f: Callable | None = None,
    *,
    limit: int = LIMIT,
    compiler: str = "auto",
    static: str | int | Sequence[str | int] = (),
) -> Any:
    """f, compiled at its first call for the shapes, dtypes and static values it meets.

    Arrays among the arguments (in tuples, lists, dicts, dataclasses) are inputs, and so are numbers, with NumPy's
    promotion of Python's numbers; a number that becomes a shape, an index or a count (or leaves for math.sqrt)
    compiles again when it changes, as strings and other hashable objects do. Branches of Python on data (`if
    x.sum() > 0`, `while err > tol`, `range(int(n))`) are guards, and every path is compiled once, unless hardly two
    calls take one: then, and where random numbers tell the way, the function runs as it is. What f does to its
    arguments is done to them: arrays written in place, lists, dicts and dataclasses changed (arguments that share
    memory and are written are not compiled for, nor are subclasses of NumPy's array, outside either: matrices, masked
    arrays). A function that changes what is outside (self.steps += 1, losses.append(loss), a memo), in its third call
    still, is not compiled but runs as it is, and so does one that makes texts of arrays (print, str, f-strings), one
    that prints, logs, warns or writes to a file after it read numbers of arrays, or one that may take from an
    iterator outside or from Python's random numbers. All else that f does besides computing (it
    prints a fixed text) happens when a path is captured. Arrays and numbers read from outside (closures, globals,
    attributes, items, by properties and operators of classes too) are read anew at every call; with another number,
    function, class or object, it is captured anew. Numbers that libraries hold are taken as they were.
    static     arguments, by name or place, that compile again when they change, whatever they are used for
    limit      paths and keys after which others run as they are: a RecompilationWarning says that the function keeps
               making new ones
    compiler   "llvm": machine code, made by llvmlite. Arithmetic is NumPy's to the bit; sums, `prod`,
               products of small matrices, and those that are added (up) are in another order; elementary functions
               and powers are within 3 ulp; floating point errors are not reported. "numpy": its kernels, and its bits
               "torch", "mxnet": their kernels; for torch also torch.compile, and on CUDA a graph of the calls, if the
               third call, which takes as long as compiling, measures one of them faster: see `measured`. (Arrays on a
               torch device are computed by torch, on a CPU or by what this makes for NumPy's where that is faster.)
               "auto": what the policy prefers ("prefer_torch" compiles for torch), else the first if it is installed

    Raises ValueError for another compiler, ModuleNotFoundError (BackendMissingError) for one that cannot be had.

    >>> f = jit(lambda x: np.sum(np.exp(x) * 2))
    >>> float(f(np.zeros(3)))
    6.0
    """
    if f is None:
        return lambda f: jit(f, limit=limit, compiler=compiler, static=static)
    function_of("jit", f)
    if compiler not in COMPILERS:
        raise ValueError(f"jit(compiler={compiler!r}): one of {', '.join(COMPILERS)}")
    found = compiler in ("auto", "llvm") and native.available()  # loads it now: the first call has enough to do
    if compiler == "llvm" and not found:
        raise ModuleNotFoundError('jit(compiler="llvm") needs llvmlite 0.45 or newer: pip install "llvmlite>=0.45"')
    if compiler in backends.names():
        backends.get(compiler)
    return Jitted(f, limit, compiler, static)
