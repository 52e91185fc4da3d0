# SPDX-License-Identifier: MIT
"""Datasets and loaders: data.DataLoader(data.Dataset('MNIST("files")'), batch_size=64)."""

import ctypes as _c

from . import _data
from ._library import (Scope as _Scope, check as _check, checked as _checked, encode as _encode,
                       failure as _failure, hold as _hold, lib as _lib, owner as _owner,
                       release as _release, text_of as _text_of)
from ._tensor import addresses as _addresses, ints as _ints
from ._train import spec_of as _spec_of, written as _written
from ._values import Pack as _Pack

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "random_split"]
_DatasetOwner = _owner(_lib.tn_dataset_drop)
_LoaderOwner = _owner(_lib.tn_loader_drop)


class Dataset:
    """Samples that a plugin reads: Dataset('CSV("iris.csv")'), or Dataset("CSV", "iris.csv").

    A class that is derived from Dataset has samples of its own: it defines __len__ and __getitem__,
    which returns a tuple of tensors, arrays, numbers and texts, and perhaps `classes`, a list of
    names. A loader with workers calls __getitem__ from several threads."""

    def __init__(self, spec=None, *args, **kwargs):
        if type(self).__getitem__ is not Dataset.__getitem__:
            return  # the samples are those of Python
        if not isinstance(spec, str):
            raise TypeError(f"Dataset: spec: wrong type, got {spec!r}; expected a text, or a class "
                            "derived from Dataset with __len__ and __getitem__")
        if args or kwargs:
            spec = _spec_of(spec, args, kwargs)
        self._adopt(_checked(_lib.tn_dataset_parse(_encode(spec))))

    def __getattr__(self, name):
        if name != "_ptr" or type(self).__getitem__ is Dataset.__getitem__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return _pointer_of(self)

    def _adopt(self, pointer):
        self._ptr = pointer
        self._owner = _DatasetOwner(pointer)
        return self

    def subset(self, indices):
        """Returns a dataset with some of the samples."""
        made = _checked(_lib.tn_dataset_subset(self._ptr, _ints(indices)))
        return object.__new__(Dataset)._adopt(made)

    def transform(self, spec):
        """Returns a dataset whose samples pass through a transform, or a list of them: "[ToFloat(),
        RandomCrop(28, padding=2)]"."""
        made = _checked(_lib.tn_dataset_transform(self._ptr, _encode(spec)))
        return object.__new__(Dataset)._adopt(made)

    def get(self, index, seed=0, epoch=0):
        """Returns a sample. Seed and epoch select the random numbers of transforms."""
        with _Pack() as pack, _Scope():
            _check(_lib.tn_dataset_get(self._ptr, index, seed, epoch, pack.pointer))
            return pack.result()

    def __getitem__(self, index):
        return self.get(index)

    def __len__(self):
        return _lib.tn_dataset_count(self._ptr)

    @property
    def classes(self):
        """The names of the classes; None for a class without a name."""
        names = [_lib.tn_dataset_class_name(self._ptr, i)
                 for i in range(_lib.tn_dataset_classes(self._ptr))]
        return [n if n is None else n.decode() for n in names]


class TensorDataset(Dataset):
    """Samples that are the elements of tensors."""

    def __init__(self, *tensors):
        self._adopt(_checked(_lib.tn_dataset_of_tensors(_addresses(tensors), len(tensors))))


class _Shared:
    """What the library's dataset refers to: a Python dataset, which owns the library's dataset."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]

    @property
    def classes(self):
        found = getattr(type(self.dataset), "classes", None)
        if found is Dataset.classes:
            return vars(self.dataset).get("classes")
        return self.dataset.classes


def _pointer_of(dataset):
    """The library's dataset of an object with __len__ and __getitem__. It is made anew for each
    use, as it keeps the object alive, and the number of samples may have changed."""
    if type(dataset).__len__ is Dataset.__len__:
        raise TypeError(f"{type(dataset).__name__}: the class does not define __len__")
    number = _hold(_Shared(dataset))
    pointer = _data.lib_dataset(number)
    if not pointer:
        error = _failure()
        _release(number)
        raise error
    return _Made(pointer)


class _Made(int):
    """The address of a dataset that is dropped with this number."""

    def __del__(self, drop=_lib.tn_dataset_drop):
        drop(int(self))


def Subset(dataset, indices):
    """A dataset with some of the samples of another one."""
    made = _checked(_lib.tn_dataset_subset(_address(dataset), _ints(indices)))
    return object.__new__(Dataset)._adopt(made)


def random_split(dataset, lengths):
    """Returns datasets with parts of the samples, which are drawn at random: lengths are numbers of
    samples, or shares of 1. tenon.manual_seed repeats a split."""
    from ._ops import operator

    count = len(dataset)
    lengths = list(lengths)
    if all(isinstance(v, float) for v in lengths) and abs(sum(lengths) - 1) < 1e-6:
        lengths = [int(count * v) for v in lengths]
        for i in range(count - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != count:
        raise ValueError(f"random_split: lengths: wrong sum, got {sum(lengths)}; expected {count}, "
                         "the number of samples, or shares of 1")
    order = operator("randperm").call((None, count), {}).tolist()
    parts = []
    for length in lengths:
        parts.append(Subset(dataset, order[:length]))
        order = order[length:]
    return parts


def _address(dataset):
    if isinstance(dataset, Dataset):
        return dataset._ptr
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return _pointer_of(dataset)
    raise TypeError(f"dataset: wrong type, got {type(dataset).__name__}; expected a Dataset, or an "
                    "object with __len__ and __getitem__")


class DataLoader:
    """The batches of a dataset: DataLoader(dataset, batch_size=64, shuffle=True, workers=2). The
    options are those of tn_loader_new. Each loop over it is an epoch, or the rest of one."""

    __slots__ = ("_ptr", "_owner", "dataset", "__weakref__")

    def __init__(self, dataset, batch_size=1, shuffle=False, **options):
        options = {"batch_size": batch_size, "shuffle": shuffle, **options}
        if "num_workers" in options:
            options["workers"] = options.pop("num_workers")
        words = ", ".join(f"{n}={_written(v)}" for n, v in options.items())
        self.dataset = dataset
        self._ptr = _checked(_lib.tn_loader_parse(_address(dataset), _encode(words)))
        self._owner = _LoaderOwner(self._ptr)

    def __iter__(self):
        while True:
            with _Scope():
                pointer = _lib.tn_loader_next(self._ptr)
                if not pointer and _lib.tn_failed():
                    raise _failure()
                batch = _Pack(pointer).result() if pointer else None
            if batch is None:
                return
            yield batch

    def __len__(self):
        """The number of batches of an epoch."""
        return _lib.tn_loader_count(self._ptr)

    def set_weights(self, weights, draws=None, replacement=True):
        """Draws samples with a probability proportional to their weights."""
        weights = [float(w) for w in weights]
        _check(_lib.tn_loader_set_weights(self._ptr, (_c.c_double * len(weights))(*weights),
                                        len(weights), len(weights) if draws is None else draws,
                                        replacement))

    @property
    def epoch(self):
        return _lib.tn_loader_epoch(self._ptr)

    @property
    def position(self):
        """The number of batches of this epoch that were returned."""
        return _lib.tn_loader_position(self._ptr)

    @property
    def skipped(self):
        """The number of samples that were left out because of skip_damaged."""
        return _lib.tn_loader_skipped(self._ptr)

    @property
    def state(self):
        """Where the loader is, as text. Assigning such a text continues there."""
        return _text_of(_lib.tn_loader_state_text, self._ptr)

    @state.setter
    def state(self, text):
        _check(_lib.tn_loader_set_state(self._ptr, _encode(text)))
