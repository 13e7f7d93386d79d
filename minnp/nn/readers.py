"""MXNet's iterators over files and other iterators, with its names and arguments, where mxnet is not installed.

    CSVIter, LibSVMIter, MNISTIter, ImageRecordIter      batches of examples in files
    ResizeIter, PrefetchingIter                          batches of other iterators

Files are read whole, when the iterator is made. What MXNet takes besides and is not named here raises TypeError.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
from collections.abc import Sequence
from typing import Any

import minnp.numpy as np

from . import checks
from .datasets import DataFileError, read_idx
from .io import DataBatch, DataDesc, DataIter, Prefetch

PathLike = str | os.PathLike


class Examples(DataIter):
    """Batches of examples [N, ...] and labels [N] or [N, k]; what a last batch lacks comes from the start.

    round_batch   the next epoch begins after what the last batch took from the start; else at the start again, and the
                  last batch is filled with the examples of the one before. `pad` says how many in both
    """

    def __init__(self, data: Any, label: Any, batch_size: int, round_batch: bool, shuffle: bool, seed: int) -> None:
        self.batch_size = checks.count("batch_size", batch_size, 1)
        self.num_data = data.shape[0]
        if label.shape[0] != self.num_data:
            raise ValueError(f"{self.num_data} examples and {label.shape[0]} labels")
        if not self.num_data:
            raise ValueError("the file has no examples")
        self.data, self.label = data, label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
        self.round_batch, self.shuffle = checks.flag("round_batch", round_batch), checks.flag("shuffle", shuffle)
        self.rng = np.random.default_rng(seed)
        self.taken = 0
        self._begin(0)

    def _begin(self, start: int) -> None:
        self.order = self.rng.permutation(self.num_data) if self.shuffle else np.arange(self.num_data)
        self.start = self.cursor = start

    @property
    def provide_data(self) -> list[DataDesc]:
        """The name and the shape of a batch of the examples."""
        return [DataDesc("data", (self.batch_size, *self.data.shape[1:]), self.data.dtype)]

    @property
    def provide_label(self) -> list[DataDesc]:
        """The name and the shape of a batch of the labels."""
        return [DataDesc("softmax_label", (self.batch_size, *self.label.shape[1:]), self.label.dtype)]

    def __len__(self) -> int:
        return -(-(self.num_data - self.start) // self.batch_size)

    def reset(self) -> None:
        past = self.cursor - self.num_data
        self._begin(past % self.num_data if self.round_batch and past > 0 else 0)

    def next(self) -> DataBatch:
        if self.cursor >= self.num_data:
            raise StopIteration
        place = np.arange(self.cursor, self.cursor + self.batch_size)
        pad = max(int(place[-1]) + 1 - self.num_data, 0)
        if pad and not self.round_batch and self.cursor >= self.batch_size:
            place[-pad:] -= self.batch_size
        self.cursor += self.batch_size
        index = self.order[place % self.num_data]
        return DataBatch([self.examples(index)], [self.label[index]], pad, index)

    def examples(self, index: Any) -> Any:
        return self.data[index]


def numbers(path: PathLike, shape: Sequence[int], name: str) -> Any:
    """The float32 array [N, *shape] in a file of numbers between commas, a line each."""
    shape = checks.shape(name, shape)
    try:
        rows = np.loadtxt(path, delimiter=",", dtype=np.float32, ndmin=2)
    except ValueError as error:
        raise DataFileError(f"{path} is not a file of numbers between commas: {error}") from error
    if rows.shape[1] != int(np.prod(shape)):
        raise DataFileError(
            f"{path} has {rows.shape[1]} numbers in a line; {name}={tuple(shape)} wants {np.prod(shape)}"
        )
    return rows.reshape(-1, *shape)


class CSVIter(Examples):
    """Batches of a file of numbers between commas, one example in a line.

    data_csv, label_csv     the files; without the second, labels are 0
    data_shape, label_shape the shapes of one example and of one label
    round_batch             the next epoch begins after what the last batch took from the start
    """

    @checks.named()
    def __init__(
        self,
        data_csv: PathLike,
        data_shape: Sequence[int],
        label_csv: PathLike | None = None,
        label_shape: Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
    ) -> None:
        data = numbers(data_csv, data_shape, "data_shape")
        if label_csv in (None, "NULL"):
            label = np.zeros((len(data), *label_shape), np.float32)
        else:
            label = numbers(label_csv, label_shape, "label_shape")
        super().__init__(data, label, batch_size, round_batch, False, 0)


def sparse(path: PathLike, size: int) -> tuple[Any, Any]:
    """(numbers [N, size], labels [N, k]), float32, of a file of lines `label[,label...] place:value ...`."""
    rows, labels = [], []
    with open(path) as lines:
        for k, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            row = np.zeros(size, np.float32)
            try:
                given = [float(word) for word in words[0].split(",")] if ":" not in words[0] else []
                for word in words[bool(given) :]:
                    place, value = word.split(":")
                    if not 0 <= int(place) < size:
                        raise ValueError(f"place {place} of {size}")
                    row[int(place)] = float(value)
            except ValueError as error:
                raise DataFileError(f"{path}, line {k}: {error}") from error
            rows.append(row)
            labels.append(given)
    if not rows or len({len(given) for given in labels}) > 1:
        raise DataFileError(f"{path} has {len(rows)} examples, with {sorted({len(x) for x in labels})} labels")
    return np.array(rows), np.array(labels, np.float32).reshape(len(rows), -1)


class LibSVMIter(Examples):
    """Batches of a file in LibSVM's format, `label place:value ...` with places from 0; examples are dense, float32.

    data_shape     the number of places, or a shape of one axis
    label_libsvm   a file of the same format whose numbers are the labels, `label_shape` of them
    """

    @checks.named()
    def __init__(
        self,
        data_libsvm: PathLike,
        data_shape: int | Sequence[int],
        label_libsvm: PathLike | None = None,
        label_shape: int | Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
    ) -> None:
        data, label = sparse(data_libsvm, int(np.prod(checks.shape("data_shape", data_shape))))
        if label_libsvm not in (None, "NULL"):
            label, _ = sparse(label_libsvm, int(np.prod(checks.shape("label_shape", label_shape))))
        super().__init__(data, label, batch_size, round_batch, False, 0)


class MNISTIter(Examples):
    """Batches of idx files: images float32 [B, 1, H, W], or [B, H * W] if `flat`, from 0 to 1; labels float32 [B].

    The examples that make no whole batch are left out of an epoch. Pixels are divided by 256, as MXNet divides them.
    """

    @checks.named()
    def __init__(
        self,
        image: PathLike,
        label: PathLike,
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
    ) -> None:
        images, labels = read_idx(image), read_idx(label)
        if images.ndim != 3 or labels.ndim != 1:
            raise DataFileError(
                f"{image} and {label} have {images.ndim} and {labels.ndim} axes; images have 3, labels 1"
            )
        images = images.astype(np.float32) / np.float32(256)
        images = images.reshape(len(images), -1) if flat else images[:, None]
        super().__init__(images, labels.astype(np.float32), batch_size, False, shuffle, seed)
        if self.batch_size > self.num_data:
            raise ValueError(f"batch_size must be between 1 and the {self.num_data} examples; got {batch_size}")

    def __len__(self) -> int:
        return self.num_data // self.batch_size

    def next(self) -> DataBatch:
        if self.cursor + self.batch_size > self.num_data:
            raise StopIteration
        return super().next()


MAGIC = 0xCED7230A


def records(path: PathLike) -> list[bytes]:
    """The records of a RecordIO file: a magic number, three bits for the part, 29 for the length, the content."""
    with open(path, "rb") as file:
        content = file.read()
    found, parts, at = [], [], 0
    while at < len(content):
        magic, head = struct.unpack_from("<II", content, at) if at + 8 <= len(content) else (0, 0)
        part, length = head >> 29, head & (1 << 29) - 1
        if magic != MAGIC or part > 3 or at + 8 + length > len(content):
            raise DataFileError(f"{path} is no RecordIO file, or is damaged: byte {at} of {len(content)}")
        parts.append(content[at + 8 : at + 8 + length])
        if part in (0, 3):  # whole, or the last of several: the magic number stood between them
            found.append(struct.pack("<I", MAGIC).join(parts))
            parts = []
        at += 8 + -(-length // 4) * 4
    if parts:
        raise DataFileError(f"{path} ends in the middle of a record")
    return found


class ImageRecordIter(Examples):
    """Batches of the images in a RecordIO file, float32 [B, 3 or 1, H, W] from 0 to 255; needs Pillow.

    data_shape        (channels, height, width)
    label_width       how many labels an image has; one gives labels [B], several [B, label_width]
    resize            the length that the shorter side is brought to first
    rand_crop         the part of (height, width) is taken anywhere, else from the middle; a smaller image is enlarged
    rand_mirror       every second image, at random, is mirrored
    mean_r, std_r, ...  (pixel - mean) / std * scale, by channel
    """

    @checks.named()
    def __init__(
        self,
        path_imgrec: PathLike,
        data_shape: Sequence[int],
        batch_size: int = 1,
        label_width: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        round_batch: bool = True,
        resize: int = -1,
        rand_crop: bool = False,
        rand_mirror: bool = False,
        mean_r: float = 0.0,
        mean_g: float = 0.0,
        mean_b: float = 0.0,
        std_r: float = 1.0,
        std_g: float = 1.0,
        std_b: float = 1.0,
        scale: float = 1.0,
    ) -> None:
        self.shape = checks.shape("data_shape", data_shape)
        if len(self.shape) != 3 or self.shape[0] not in (1, 3):
            raise ValueError(f"data_shape is (1 or 3, height, width), got {data_shape!r}")
        try:
            self.pillow = importlib.import_module("PIL.Image")
        except ImportError as error:
            raise ImportError("ImageRecordIter decodes images with Pillow: pip install pillow") from error
        channels = self.shape[0]
        self.mean = np.array([mean_r, mean_g, mean_b][:channels], np.float32).reshape(-1, 1, 1)
        self.std = np.array([std_r, std_g, std_b][:channels], np.float32).reshape(-1, 1, 1)
        self.scale, self.size = np.float32(scale), resize
        self.crop, self.mirror = checks.flag("rand_crop", rand_crop), checks.flag("rand_mirror", rand_mirror)
        labels, self.images = [], []
        for content in records(path_imgrec):
            count, label = struct.unpack_from("<If", content) if len(content) >= 24 else (-1, 0.0)
            if count < 0 or 24 + 4 * count > len(content):
                raise DataFileError(f"{path_imgrec} has a record of {len(content)} bytes without an image")
            given = list(struct.unpack_from(f"<{count}f", content, 24)) if count else [label]
            if len(given) != label_width:
                raise DataFileError(f"{path_imgrec} has an image with {len(given)} labels; label_width={label_width}")
            labels.append(given)
            self.images.append(content[24 + 4 * count :])
        label = np.array(labels, np.float32).reshape(-1, label_width)
        super().__init__(np.zeros((len(labels), 0), np.float32), label, batch_size, round_batch, shuffle, seed)

    @property
    def provide_data(self) -> list[DataDesc]:
        """The name and the shape of a batch of the images."""
        return [DataDesc("data", (self.batch_size, *self.shape))]

    def examples(self, index: Any) -> Any:
        return np.array([self.decoded(self.images[int(i)]) for i in index], dtype=np.float32)

    def decoded(self, content: bytes) -> Any:
        """One image, as `data_shape` has it."""
        channels, height, width = self.shape
        try:
            image = self.pillow.open(io.BytesIO(content)).convert("RGB" if channels == 3 else "L")
        except (OSError, ValueError, SyntaxError) as error:
            raise DataFileError(f"an image of {len(content)} bytes cannot be decoded: {error}") from error
        w, h = image.size
        if self.size > 0:
            w, h = (self.size, h * self.size // w) if w < h else (w * self.size // h, self.size)
        if w < width or h < height:  # no smaller than the part that is taken
            grown = max(width / w, height / h)
            w, h = max(round(w * grown), width), max(round(h * grown), height)
        image = image.resize((w, h)) if (w, h) != image.size else image
        free = (h - height, w - width)
        top, left = (int(self.rng.integers(n + 1)) if self.crop else n // 2 for n in free)
        pixels = np.asarray(image, np.float32)[top : top + height, left : left + width]
        pixels = pixels.transpose(2, 0, 1) if channels == 3 else pixels[None]
        if self.mirror and self.rng.integers(2):
            pixels = pixels[:, :, ::-1]
        return (pixels - self.mean) / self.std * self.scale


class ResizeIter(DataIter):
    """`size` batches of another iterator in an epoch: it begins anew where it ends before, or goes on.

    reset_internal   reset() resets the other iterator too
    """

    @checks.named()
    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        self.data_iter, self.size = data_iter, checks.count("size", size, 1)
        self.reset_internal = checks.flag("reset_internal", reset_internal)
        self.batch_size = data_iter.batch_size
        self.given = 0

    provide_data = property(lambda self: self.data_iter.provide_data, doc="(name, shape of a batch) of each array.")
    provide_label = property(lambda self: self.data_iter.provide_label, doc="(name, shape of a batch) of each label.")

    def __len__(self) -> int:
        return self.size

    def reset(self) -> None:
        self.given = 0
        if self.reset_internal:
            self.data_iter.reset()

    def next(self) -> DataBatch:
        if self.given == self.size:
            raise StopIteration
        self.given += 1
        try:
            return self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            return self.data_iter.next()


class PrefetchingIter(Prefetch):
    """The batches of an iterator, or of several side by side, prepared by a thread.

    rename_data, rename_label   for each iterator a dict: its name of an array -> the name here
    """

    @checks.named()
    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[dict] | None = None,
        rename_label: Sequence[dict] | None = None,
    ) -> None:
        several = list(iters) if isinstance(iters, list | tuple) else [iters]
        super().__init__(Beside(several, rename_data or [{}] * len(several), rename_label or [{}] * len(several)))


class Beside(DataIter):
    """One batch of each iterator, their arrays one after the other."""

    def __init__(self, iters: list, rename_data: Sequence[dict], rename_label: Sequence[dict]) -> None:
        if not iters or len(rename_data) != len(iters) or len(rename_label) != len(iters):
            raise ValueError(f"{len(iters)} iterators, {len(rename_data)} and {len(rename_label)} dicts of names")
        self.iters, self.batch_size = iters, iters[0].batch_size
        renamed = lambda facts, names: [DataDesc(names.get(d.name, d.name), d.shape, d.dtype, d.layout) for d in facts]
        self.provide_data = [x for i, names in zip(iters, rename_data) for x in renamed(i.provide_data, names)]
        self.provide_label = [x for i, names in zip(iters, rename_label) for x in renamed(i.provide_label, names)]

    def __len__(self) -> int:
        return min(map(len, self.iters))

    def reset(self) -> None:
        for i in self.iters:
            i.reset()

    def next(self) -> DataBatch:
        batches = [i.next() for i in self.iters]
        data, label = [x for b in batches for x in b.data], [x for b in batches for x in b.label]
        return DataBatch(data, label, max(b.pad for b in batches), batches[0].index)
