"""Vectors of titles: two are near each other where the pages that name the one are as those that name the other.

`vectors.arrow` has them in the order of `contexts.arrow`. A vector is as long as its title is rare.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import schemas, storage

VECTORS = "vectors.arrow"
_NOTHING = 1e-9  # of a sum's length: what is left by rounding where all of it was taken away

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class TitleVectors:
    """The vectors of titles by their rows, memory-mapped."""

    def __init__(self, folder: str) -> None:
        """Open what `write_vectors` wrote. Raises: ValueError: the file is not a whole one."""
        batches = storage.open_arrow(storage.join(folder, VECTORS)).to_batches()
        columns = [batch.column(0) for batch in batches]
        self._vectors = [each.flatten().to_numpy().reshape(len(each), each.type.list_size) for each in columns]
        self._bounds = np.cumsum([0, *map(len, columns)])

    def of(self, rows: Integers) -> Floats:
        """(rows, size): the vectors of these rows; of a row below 0 it is 0."""
        found = np.zeros((len(rows), schemas.VECTOR_SIZE))
        batches = np.searchsorted(self._bounds, rows, side="right") - 1
        places = (rows - self._bounds[batches]).tolist()
        for number in np.flatnonzero(rows >= 0).tolist():
            found[number] = self._vectors[batches[number]][places[number]]
        return found


def coherence(vectors: Floats, titles: Sequence[Integers], weights: Sequence[Floats], names: Integers) -> list[Floats]:
    """Return for each mention how near its candidates are to those of the other mentions of its document.

    Mentions of one name count once, and not for each other. `titles` are for each mention its candidates, by their
    rows in `vectors`, `weights` such as their priors, and `names` the number of each mention's name. This
    nearness is the cosine of each candidate's vector with the weighted sum of all candidates of other names, from
    -1 to 1; 0 where one of them has no length.
    """
    sizes = [len(each) for each in titles]
    if not sum(sizes):
        return [np.zeros(0) for _ in titles]
    rows, of_name = np.concatenate(titles), np.repeat(names, sizes)
    first = np.unique(names, return_index=True)[1]
    is_first = np.repeat(np.bincount(first, minlength=len(names)) > 0, sizes)
    sums = np.zeros((int(names.max()) + 1, vectors.shape[1]))
    np.add.at(sums, of_name[is_first], np.concatenate(weights)[is_first, None] * vectors[rows[is_first]])
    total = sums.sum(axis=0)
    others = total - sums
    others[np.linalg.norm(others, axis=1) <= _NOTHING * np.linalg.norm(total)] = 0
    products = np.einsum("cv,cv->c", unit(vectors)[rows], unit(others)[of_name])
    return np.split(products, np.cumsum(sizes)[:-1])


def unit(vectors: Floats) -> Floats:
    """The vectors, of length 1; one without length stays so."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Floats = vectors / np.where(lengths > 0, lengths, 1)
    return found


def write_vectors(folder: str, parts: Iterable[NDArray[np.float16]]) -> storage.FileEntry:
    """Write vectors, in the order of their rows; each part is (titles, size)."""
    schema, count = schemas.TITLE_VECTORS.schema, 0
    with storage.arrow_writer(storage.join(folder, VECTORS), schema) as writer:
        for part in parts:
            values = pa.array(part.ravel(), pa.float16())
            lists = pa.FixedSizeListArray.from_arrays(values, type=schema.field(0).type)
            writer.write_batch(pa.record_batch([lists], schema=schema))
            count += len(part)
    return storage.describe(folder, VECTORS, count)
