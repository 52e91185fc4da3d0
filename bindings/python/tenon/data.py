# SPDX-License-Identifier: MIT
"""Datasets and loaders: data.DataLoader(data.Dataset('MNIST("files")'), batch_size=64)."""

import ctypes as c

from ._library import Scope, check, checked, encode, failure, lib, owner, text_of
from ._tensor import addresses, ints
from ._train import spec_of, written
from ._values import Pack

_DatasetOwner = owner(lib.tn_dataset_drop)
_LoaderOwner = owner(lib.tn_loader_drop)


class Dataset:
    """Samples that a plugin reads: Dataset('CSV("iris.csv")'), or Dataset("CSV", "iris.csv")."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __init__(self, spec, *args, **kwargs):
        if args or kwargs:
            spec = spec_of(spec, args, kwargs)
        self._adopt(checked(lib.tn_dataset_parse(encode(spec))))

    def _adopt(self, pointer):
        self._ptr = pointer
        self._owner = _DatasetOwner(pointer)
        return self

    def subset(self, indices):
        """Returns a dataset with some of the samples."""
        made = checked(lib.tn_dataset_subset(self._ptr, ints(indices)))
        return Dataset.__new__(Dataset)._adopt(made)

    def transform(self, spec):
        """Returns a dataset whose samples pass through a transform, or a list of them: "[ToFloat(),
        RandomCrop(28, padding=2)]"."""
        made = checked(lib.tn_dataset_transform(self._ptr, encode(spec)))
        return Dataset.__new__(Dataset)._adopt(made)

    def get(self, index, seed=0, epoch=0):
        """Returns a sample. Seed and epoch select the random numbers of transforms."""
        with Pack() as pack, Scope():
            check(lib.tn_dataset_get(self._ptr, index, seed, epoch, pack.pointer))
            return pack.result()

    def __getitem__(self, index):
        return self.get(index)

    def __len__(self):
        return lib.tn_dataset_count(self._ptr)

    @property
    def classes(self):
        """The names of the classes; None for a class without a name."""
        names = [lib.tn_dataset_class_name(self._ptr, i)
                 for i in range(lib.tn_dataset_classes(self._ptr))]
        return [n if n is None else n.decode() for n in names]


class TensorDataset(Dataset):
    """Samples that are the elements of tensors."""

    __slots__ = ()

    def __init__(self, *tensors):
        self._adopt(checked(lib.tn_dataset_of_tensors(addresses(tensors), len(tensors))))


class DataLoader:
    """The batches of a dataset: DataLoader(dataset, batch_size=64, shuffle=True, workers=2). The
    options are those of tn_loader_new. Each loop over it is an epoch, or the rest of one."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __init__(self, dataset, **options):
        words = ", ".join(f"{n}={written(v)}" for n, v in options.items())
        self._ptr = checked(lib.tn_loader_parse(dataset._ptr, encode(words)))
        self._owner = _LoaderOwner(self._ptr)

    def __iter__(self):
        while True:
            with Scope():
                pointer = lib.tn_loader_next(self._ptr)
                if not pointer and lib.tn_failed():
                    raise failure()
                batch = Pack(pointer).result() if pointer else None
            if batch is None:
                return
            yield batch

    def __len__(self):
        """The number of batches of an epoch."""
        return lib.tn_loader_count(self._ptr)

    def set_weights(self, weights, draws=None, replacement=True):
        """Draws samples with a probability proportional to their weights."""
        weights = [float(w) for w in weights]
        check(lib.tn_loader_set_weights(self._ptr, (c.c_double * len(weights))(*weights),
                                        len(weights), len(weights) if draws is None else draws,
                                        replacement))

    @property
    def epoch(self):
        return lib.tn_loader_epoch(self._ptr)

    @property
    def position(self):
        """The number of batches of this epoch that were returned."""
        return lib.tn_loader_position(self._ptr)

    @property
    def skipped(self):
        """The number of samples that were left out because of skip_damaged."""
        return lib.tn_loader_skipped(self._ptr)

    @property
    def state(self):
        """Where the loader is, as text. Assigning such a text continues there."""
        return text_of(lib.tn_loader_state_text, self._ptr)

    @state.setter
    def state(self, text):
        check(lib.tn_loader_set_state(self._ptr, encode(text)))
