"""What carries arrays between processes: torch.distributed's process groups of gloo. What is on a GPU passes the host.

Two things are ours. *Agreement*: before a collective moves anything, the ranks exchange a small record of what each is
about to do (operation, dtype, shape, the user's line), and every rank raises where they differ. *Signs of life*: each
process writes a line to the store twice a second, saying what it does. A process that waits reads the others' lines, so
that a rank that died, was stopped or went another way is named within a stated time; nothing waits for ever.

No object is pickled: what travels are the bytes of numbers, and records in JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as onp

from ..core import cpu
from ..core.rows.report import user_line
from ..errors import MeshError

ENCODE = json.JSONEncoder(separators=(",", ":")).encode  # (json.dumps makes an encoder in each call)
RECORD = 1024  # bytes of a record; what of it the description does not need carries small arrays
SPARE = 60  # seconds of gloo's own timeout beyond ours, which says more
BEAT = 0.5  # seconds between two signs of life
SLICE = timedelta(seconds=1)  # how long a wait goes on before it looks at the others
POLLED = 0.002  # seconds within which a wait asks again and again whether the message has come
YIELD = getattr(os, "sched_yield", lambda: time.sleep(0))  # another process has the core
ABSENT = b'{"doing": "has not come", "left": false, "at": null}'  # what a rank says that has said nothing yet
EARLY = 5.0  # seconds after a broken connection within which the rank that broke it is found out


class Transport:
    """The processes of one job.

    timeout    seconds a collective may wait for a rank that is alive
    patience   seconds without a sign of life after which a rank counts as dead
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float, patience: float, interface: str | None):
        import torch.distributed

        self.torch, self.dist = torch, torch.distributed
        self.rank, self.size, self.timeout, self.patience = rank, size, timeout, patience
        self.interface, self.broken, self.deaf = interface, "", False
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # torchrun keeps one store for all of them
        self.base = self.dist.PrefixStore(f"minnp/{attempt}", store)
        self.doing, self.left = "starts", False
        self.groups: dict[Any, Group] = {}
        self.seen: dict[int, tuple[bytes, float]] = {}
        self._beat()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beats, name="minnp-mesh", daemon=True)
        self._thread.start()
        atexit.register(self.leave)

    # -------------------------------------------------------------- signs of life
    def _beats(self) -> None:
        while not self._stop.wait(BEAT):
            try:
                self._beat()
            except RuntimeError:  # the store has gone: whoever waits finds out by itself
                return

    def _beat(self) -> None:
        text = json.dumps({"doing": self.doing, "left": self.left, "at": time.time(), "size": self.size})
        self.base.set(f"beat/{self.rank}", text)

    def leave(self) -> None:
        """Say that this process ends, so that nobody waits for it; called when it does."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(2 * BEAT)
        error = getattr(sys, "last_value", None)
        self.left, self.doing = True, "ended" if error is None else f"ended with {type(error).__name__}: {error}"[:400]
        with contextlib.suppress(RuntimeError):
            self._asked(self._beat)
        if not self.broken:  # gloo's threads give back what they hold of NumPy's memory while there is an interpreter
            for group in self.groups.values():
                group.pg = None

    def _asked(self, question: Callable[[], Any]) -> Any:
        """What a question to the store gives. Where its connection is lost the store's client waits for ever, so
        another thread asks: RuntimeError if that has heard nothing for `patience` seconds, and at once from then on."""
        answer: list = []

        def ask() -> None:
            try:
                answer.append((question(), None))
            except RuntimeError as error:
                answer.append((None, error))

        if not self.deaf:
            thread = threading.Thread(target=ask, name="minnp-mesh-question", daemon=True)
            thread.start()
            thread.join(self.patience)
        if not answer:
            self.deaf = True
            raise RuntimeError("the store does not answer")
        found, error = answer[0]
        if error is not None:
            raise error
        return found

    def _others(self) -> dict[int, dict]:
        """What each other rank says of itself, and for how long it has said nothing new, as `silent`."""
        said = {}
        for r in range(self.size):
            if r == self.rank:
                continue
            key = f"beat/{r}"
            text = self.base.get(key) if self.base.check([key]) else ABSENT
            if r not in self.seen or self.seen[r][0] != text:
                self.seen[r] = (text, time.monotonic())
            said[r] = json.loads(text) | {"silent": time.monotonic() - self.seen[r][1]}
        return said

    def wait(self, work: Any, what: str) -> None:
        """Wait for a collective; MeshError, naming the rank, where it cannot end."""
        start, looked = time.monotonic(), 0.0
        # To sleep and be woken takes longer than most messages do: first ask, and let others have the core meanwhile.
        while not work.is_completed() and time.monotonic() - start < POLLED:
            YIELD()
        while True:
            try:
                work.wait(SLICE)
                return
            except RuntimeError as error:
                if work.is_completed():
                    raise self.failure(what, f"the connection broke ({str(error).splitlines()[0][:200]})") from error
            waited = time.monotonic() - start
            if waited - looked >= self.size / 64:
                looked = waited
                if found := self._blame(self.patience):
                    raise self.failure(what, found, known=True)
            if waited > self.timeout:
                raise self.failure(what, f"it has waited {waited:.0f} s, which is the timeout")

    def _blame(self, patience: float) -> str:
        """Who is the reason that this process waits in vain; empty where nobody is, yet."""
        try:
            known = self._asked(lambda: self.base.get("failed").decode() if self.base.check(["failed"]) else "")
            if known:
                return known
            others = self._asked(self._others)
        except RuntimeError:
            return (
                "the store of the job cannot be reached: the process that holds it has died, or the connection is lost"
            )
        for r, said in others.items():
            if said.get("size", self.size) != self.size:
                return f"rank {self.rank} was started with WORLD_SIZE {self.size}, and rank {r} with {said['size']}"
            if said["left"]:
                return f"rank {r} has {said['doing']}"
            if said["silent"] > patience and said["at"] is not None:
                return f"rank {r} has given no sign of life for {said['silent']:.0f} s; its last: {said['doing']}"
        return ""

    def failure(self, what: str, why: str, known: bool = False) -> MeshError:
        """The error of this rank's collective `what`, and who is to blame, which the other ranks are told too."""
        found = why if known else ""
        deadline = time.monotonic() + min(EARLY, self.patience)
        while not found and time.monotonic() < deadline and "timeout" not in why:
            found = self._blame(4 * BEAT)
            time.sleep(BEAT / 2)
        said = ""
        with contextlib.suppress(RuntimeError):
            said = "; ".join(f"rank {r}: {s['doing']}" for r, s in self._asked(self._others).items())
            if found and not self._asked(lambda: self.base.check(["failed"])):
                self._asked(lambda: self.base.set("failed", found))
        self.broken = found or why
        self._keep_alive()
        return MeshError(
            f"rank {self.rank} of {self.size}, in {what}: {found or why}"
            + ("" if known or not found else f"; {why}")
            + (f". The others said last: {said}" if said else "")
        )

    def _keep_alive(self) -> None:
        """What is left of a broken group would wait for its threads, which wait for the rank that is gone."""
        import ctypes

        for group in self.groups.values():
            if group.pg is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(group.pg))

    # -------------------------------------------------------------- groups
    @contextlib.contextmanager
    def on_interface(self) -> Iterator[None]:
        """Within it, gloo's groups listen on this job's interface."""
        named = self.interface and "GLOO_SOCKET_IFNAME" not in os.environ
        if named:
            os.environ["GLOO_SOCKET_IFNAME"] = self.interface
        try:
            yield
        finally:
            if named:
                del os.environ["GLOO_SOCKET_IFNAME"]

    def group(self, ranks: Sequence[int], purpose: str = "") -> Group:
        """The group of these ranks, made on first use: all of them ask at the same point of the program."""
        key = (tuple(ranks), purpose)
        if key not in self.groups:
            self.groups[key] = Group(self, tuple(ranks), purpose)
        return self.groups[key]


class Group:
    """Some of the job's ranks, as one process group of c10d.

    ranks   their numbers in the job, in order; `rank` is this process's place among them
    """

    def __init__(self, transport: Transport, ranks: tuple[int, ...], purpose: str) -> None:
        self.transport, self.ranks, self.size = transport, ranks, len(ranks)
        self.rank = ranks.index(transport.rank)
        self.name = f"{purpose}/{'-'.join(map(str, ranks))}" if self.size < 65 else f"{purpose}/{hash(ranks)}"
        self.torch = transport.torch
        dist = transport.dist
        # gloo waits in the store, and nobody else can use that connection meanwhile: it has its own, where torch can
        clone = getattr(transport.base, "clone", None)
        store = dist.PrefixStore(f"gloo/{self.name}", transport.base if clone is None else clone())
        seconds = timedelta(seconds=transport.timeout + SPARE)
        self.pg: Any = None
        made: list = []

        def connect() -> None:
            try:
                made.append((dist.ProcessGroupGloo(store, self.rank, self.size, seconds), None))
            except RuntimeError as error:
                made.append((None, error))

        what = "connecting the ranks"
        thread, start = threading.Thread(target=connect, name="minnp-mesh-connect", daemon=True), time.monotonic()
        with transport.on_interface():
            thread.start()
            while not made:
                thread.join(max(self.size / 64, 1.0))
                if not made and clone is not None and (found := transport._blame(transport.patience)):
                    raise transport.failure(what, found, known=True)
                if not made and clone is not None and time.monotonic() - start > transport.timeout:
                    raise transport.failure(what, f"it has waited {transport.timeout:.0f} s, which is the timeout")
        self.pg, error = made[0]
        if error is not None:
            raise transport.failure(what, f"gloo: {str(error).splitlines()[0][:300]}") from error

    def run(self, start: Any, what: str) -> None:
        """Start a collective and wait for it."""
        self.transport.wait(self.start(start, what), what)

    def start(self, start: Any, what: str) -> Any:
        """The work of a collective that was started: `transport.wait` waits for it."""
        if self.transport.broken:
            raise MeshError(f"rank {self.transport.rank}, in {what}: the mesh broke before: {self.transport.broken}")
        try:
            return start()
        except RuntimeError as error:
            raise self.transport.failure(what, f"the connection broke ({str(error).splitlines()[0][:200]})") from error

    # -------------------------------------------------------------- agreement
    def agree(self, facts: dict, payload: bytes = b"", alike: Sequence[str] = ()) -> list[tuple[dict, bytes]]:
        """Each rank's facts and payload; MeshError on every rank where the facts named in `alike` differ.

        facts     of this rank's call, in JSON: "op", "dtype", "shape", ...; "at" is added, the user's line
        payload   as many bytes as `room` says
        One all-gather of 1 KB per rank.
        """
        head = ENCODE(facts | {"at": user_line()[-200:]}).encode()
        mine, what = understood(head)
        start = len(head).to_bytes(4, "little") + len(payload).to_bytes(4, "little") + head + payload
        if len(start) > RECORD:
            raise MeshError(f"{what}: more than {RECORD} bytes say what it does")
        found = []
        for record in self.gather(onp.frombuffer(bytearray(start.ljust(RECORD, b"\0")), "u1"), what):
            text = record.tobytes()
            n, m = (int.from_bytes(text[at : at + 4], "little") for at in (0, 4))
            found.append((understood(text[8 : 8 + n])[0], text[8 + n : 8 + n + m]))
        if all(said is mine for said, _ in found):
            return found
        for r, (said, _) in enumerate(found):
            first = found[0][0]
            for fact in ("op", *alike):
                if said.get(fact) != first.get(fact):
                    raise MeshError(
                        f"the ranks disagree on {fact}: rank {self.ranks[0]} calls {described(first)}, and rank "
                        f"{self.ranks[r]} calls {described(said)}. Every rank must make the same calls, in the same "
                        "order, with arrays that fit"
                    )
        return found

    # -------------------------------------------------------------- bytes and numbers
    def gather(self, mine: onp.ndarray, what: str) -> onp.ndarray:
        """[ranks, n] bytes: those of each rank, of which all give n."""
        self.transport.doing = what
        out, t = cpu.empty((self.size, mine.size), onp.dtype("u1")), self.torch.from_numpy
        if self.size == 2 and mine.size:  # they trade what they have: gloo's all-gather takes up to twice as long
            other = 1 - self.rank
            counts = [mine.size * (r == other) for r in range(2)]
            work = self.start(lambda: self.pg.alltoall_base(t(out[other]), t(mine), counts, counts), what)
            out[self.rank] = mine
            self.transport.wait(work, what)
        else:
            self.run(lambda: self.pg._allgather_base(t(out).view(-1), t(mine)), what)
        self.transport.doing = f"computes, after {what}"
        return out

    def exchange(self, mine: onp.ndarray, counts: Sequence[int], coming: Sequence[int], what: str) -> onp.ndarray:
        """Bytes from each rank, `coming` many, for `counts` many sent to each."""
        self.transport.doing = what
        out = cpu.empty((sum(coming),), onp.dtype("u1"))
        t = self.torch.from_numpy
        self.run(lambda: self.pg.alltoall_base(t(out), t(mine), list(coming), list(counts)), what)
        self.transport.doing = f"computes, after {what}"
        return out

    def broadcast(self, data: onp.ndarray, root: int, what: str) -> None:
        """The root's bytes into `data`, on every rank."""
        self.transport.doing = what
        self.run(lambda: self.pg.broadcast(self.torch.from_numpy(data), root), what)
        self.transport.doing = f"computes, after {what}"

    def sum_into(self, tensor: Any, what: str, op: str = "sum") -> None:
        """tensor = the sum (or max, min, product) of all ranks' tensors, in place."""
        self.transport.doing = what
        self.run(lambda: self.all_reduce(tensor, op), what)
        self.transport.doing = f"computes, after {what}"

    def all_reduce(self, tensor: Any, op: str = "sum") -> Any:
        """The work of an all-reduce in place."""
        kind = self.transport.dist.ReduceOp
        kinds = {"sum": kind.SUM, "max": kind.MAX, "min": kind.MIN, "prod": kind.PRODUCT}
        return self.pg.allreduce([tensor], kinds[op])


@functools.lru_cache(maxsize=256)
def understood(head: bytes) -> tuple[dict, str]:
    """The facts that a record says, which nobody changes, and the same in words."""
    facts = json.loads(head)
    return facts, described(facts)


def described(facts: dict) -> str:
    """all_reduce(float32[3, 4], sum) at program.py:12"""
    shape = ", ".join(map(str, facts["shape"])) if "shape" in facts else ""
    array = f"{facts['dtype']}[{shape}]" if "dtype" in facts else ""
    rest = [f"{k} {v}" for k, v in facts.items() if k not in ("op", "dtype", "shape", "at")]
    return f"{facts['op']}({', '.join([array, *rest] if array else rest)})" + (
        f" at {facts['at']}" if facts.get("at") else ""
    )


# ------------------------------------------------------------------ how the processes of a job find each other
def world_size() -> int:
    """How many processes torchrun started; 1 without it."""
    said = os.environ.get("WORLD_SIZE", "1")
    if not said.isdecimal() or said == "0":
        raise MeshError(f"WORLD_SIZE={said!r}: it is the number of processes, at least 1; torchrun sets it")
    return int(said)


def connected(timeout: float, patience: float, interface: str | None) -> Transport | None:
    """The transport of the job that torchrun's variables describe; None where there is one process."""
    size = world_size()
    if size == 1:
        return None
    rank = _number("RANK", size)
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise MeshError(f"a mesh of {size} processes needs torch.distributed: pip install torch") from error
    if interface is None and "GLOO_SOCKET_IFNAME" not in os.environ and os.environ.get("LOCAL_WORLD_SIZE") == str(size):
        interface = "lo" if sys.platform == "linux" else None  # one machine: nothing listens outside it
    try:
        store = _store(dist, rank, size, timedelta(seconds=timeout))
        return Transport(store, rank, size, timeout, patience, interface)
    except (RuntimeError, OSError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        holder = "torchrun" if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else "rank 0"
        why = (str(error) or repr(error)).splitlines()[0]  # the rest are addresses in torch's code
        raise MeshError(
            f"rank {rank} of {size} did not reach the store at {where}, which {holder} holds: {why}"
        ) from error


def _number(name: str, size: int) -> int:
    if name not in os.environ:
        raise MeshError(f"WORLD_SIZE is {size}, but {name} is not set: start the program with torchrun")
    number = int(os.environ[name])
    if not 0 <= number < size:
        raise MeshError(f"{name} is {number} in a job of WORLD_SIZE {size}: the ranks are 0 to {size - 1}")
    return number


def _store(dist: Any, rank: int, size: int, timeout: timedelta) -> Any:
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store, _, _ = next(dist.rendezvous("env://", timeout=timeout))
        return store
    if "MINNP_MESH_FILE" in os.environ:  # processes of one machine, which meet in a file instead of at a port
        return dist.FileStore(os.environ["MINNP_MESH_FILE"], size)
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", 29500))
    options: dict[str, Any] = {}
    if rank == 0:  # torch's own would listen on every interface
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(size)
        options["master_listen_fd"] = listening.detach()
    return dist.TCPStore(host, port, size, rank == 0, timeout, wait_for_workers=False, **options)
