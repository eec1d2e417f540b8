"""Matrices: their parameters, and what kernels do with their rows. Joined ones may have parts of different types."""

from dataclasses import dataclass

from tvm.tirx import all as all_of

from schedule import T, lanes_of, when
from weights import FOURS, GROUP, TYPES, Plain, vector_of


@dataclass(frozen=True)
class Part:
    """Neighbouring rows that are stored alike."""

    rows: int
    type: str

    @property
    def form(self):
        return TYPES[self.type]


def parts_of(shape, name, rows):
    """The parts of the matrix called name, which is joined from matrices of these rows."""
    types = shape["weight_types"].get(name, ["plain"])
    parts = []
    for count, kind in zip(rows, types * len(rows) if len(types) == 1 else types, strict=True):
        if parts and parts[-1].type == kind:
            count += parts.pop().rows
        parts.append(Part(count, kind))
    return tuple(parts)


@dataclass(frozen=True)
class Matrix:
    """The parameters of a matrix."""

    parts: tuple[Part, ...]
    tensors: tuple

    @staticmethod
    def planted(tree, shape, name, columns, *rows):
        """Plants the parameters. If parts differ in type, their numbers precede the names."""
        parts = parts_of(shape, name, rows)
        places = [name if len(parts) == 1 else f"{name}.{i}" for i in range(len(parts))]
        return Matrix(parts, tuple(
            tree.plant(f"{place}.{suffix}", dtype, part.rows, width)
            for place, part in zip(places, parts) for suffix, dtype, width in part.form.tensors(columns, shape["dtype"])))


class Source:
    """Vectors that rows are multiplied with."""

    def __init__(self, k, count, lanes):
        self.k, self.vectors, self.kept = k, [k.local(lanes) for _ in range(count)], {}

    def __getitem__(self, i):
        return self.vectors[i].get()

    def moved(self, i, found):
        """Vector i, for a product with bits that are not moved."""
        if (i, found.first, found.step) not in self.kept:
            self.kept[i, found.first, found.step] = self.k.keep(self[i] * found.moves(), 4)
        return self.kept[i, found.first, found.step]

    def sum(self, span, offsets=None):
        """The sum of some vectors, each times its offsets."""
        if (span, offsets) not in self.kept:
            total = self.k.local(4)
            total.set(0)
            for i, of in zip(span, offsets or [(1,) * 4] * len(span)):
                if any(of):
                    total.add(self[i] * vector_of(of))
            self.kept[span, offsets] = total.get()
        return self.kept[span, offsets]


class Reader:
    """A matrix among the arguments of a kernel."""

    def __init__(self, k, parts, columns, dtype, vectors=1):
        self.k, self.columns, self.parts, first = k, columns, [], 0
        for i, part in enumerate(parts):
            tensors = [k.tensor(f"{name}{i or ''}", (part.rows, width), kind)
                       for name, kind, width in part.form.tensors(columns, dtype)]
            self.parts.append((first, part, tensors))
            first += part.rows
        self.plain = all(isinstance(part.form, Plain) for part in parts)
        self.lanes = lanes_of(columns)
        self.step = self.lanes * vectors if self.plain else GROUP  # columns that add takes

    def source(self):
        """Room for what a row is multiplied with in a step."""
        return Source(self.k, self.step // self.lanes, self.lanes)

    def among(self, row):
        """Yields type and tensors of the part that has a row of the matrix, and the row's number there."""
        for first, part, tensors in self.parts:
            if len(self.parts) == 1:
                yield part.form, tensors, row
                continue
            with when(all_of(row >= first, row < first + part.rows)):
                yield part.form, tensors, row - first

    def vector(self, row, at):
        """The vector of a row at a column, in a variable."""
        value = self.k.local(self.lanes)
        for form, tensors, row in self.among(row):
            self.restorer(form, tensors, row, at // self.step)(value, at % self.step // self.lanes)
        return value.get()

    def restore(self, value, terms, scales, i):
        """Sets a variable to vector i of a group."""
        if len(scales) == 1:
            scale, least = scales[0]
        else:
            scale, least = (T.Select(i < FOURS // 2, *values) for values in zip(*scales))
        value.set(0)
        for factor, vector in terms:
            found = vector(i)
            number = found.bits.astype("float32x4") * found.moves() + found.offsets()
            value.add(number if factor is None else number * self.lanes_of(factor))
        value.set(value.get() * self.lanes_of(scale))
        if least is not None:
            value.add(-self.lanes_of(least))

    def add(self, rows, step, source, totals):
        """Adds to the total of each row its product with the source in the columns of a step. The rows are neighbours."""
        if self.apart(rows):
            for row, total in zip(rows, totals):
                self.add([row], step, source, [total])
            return
        kept = source.kept
        for form, tensors, first in self.among(rows[0]):
            if len(self.parts) > 1:  # what one branch keeps, another doesn't have
                source.kept = dict(kept)
            for row, total in zip(self.rows(rows, first), totals):
                self.add_row(form, tensors, row, step, source, total)
        source.kept = kept

    def apart(self, rows):
        """Whether neighbouring rows may lie in different parts."""
        return any(first % len(rows) for first, _, _ in self.parts)

    def rows(self, rows, first):
        """The numbers of neighbouring rows in a part, given that of the first."""
        return rows if len(self.parts) == 1 else [row - rows[0] + first for row in rows]

    def add_row(self, form, tensors, row, step, source, total):
        if isinstance(form, Plain):
            read = self.restorer(form, tensors, row, step)
            for i, vector in enumerate(source.vectors):
                weight = self.k.local(self.lanes)
                read(weight, i)
                total.add_product(vector, weight)
            return
        extra, groups = self.extra(form, tensors[1], row), self.columns // GROUP
        terms = form.terms(lambda base: self.words(tensors[0], row, base), extra, step, groups)
        scales = form.scales(extra, step, groups)
        length = FOURS // len(scales)
        for half, (scale, least) in enumerate(scales):
            span, scale = range(half * length, (half + 1) * length), self.k.keep(scale)
            for factor, vector in terms:
                self.add_term([vector(i) for i in span], span, scale if factor is None else scale * factor, source, total)
            if least is not None:
                total.add(-(source.sum(span) * self.lanes_of(least)))

    def add_many(self, runs, step, sources, totals):
        """Adds to the totals of each row, one for each of many sources, its products with the row in the columns of a step. Each run
        has rows that are neighbours. sources reads the vectors at a column.

        Restoring a value once costs less than what its bits cost each source. Written out, all of a step take long to compile."""
        if len(self.parts) == 1:
            runs = [sum(runs, [])]
        elif any(map(self.apart, runs)):
            runs = [[row] for run in runs for row in run]
        restorers = [[[self.restorer(form, tensors, row, step) for row in self.rows(run, first)]
                      for form, tensors, first in self.among(run[0])] for run in runs]
        with T.serial(0, self.step // self.lanes) as i:
            vectors, rest = sources(step * self.step + i * self.lanes), iter(totals)
            for run, of_parts in zip(runs, restorers):
                values = [self.k.local(self.lanes) for _ in run]
                for part, _ in enumerate(self.among(run[0])):
                    for restore, value in zip(of_parts[part], values):
                        restore(value, i)
                for value, sums in zip(values, rest):
                    for vector, total in zip(vectors, sums):
                        total.add_product(vector, value)

    def restorer(self, form, tensors, row, step):
        """A function that sets a variable to vector i of a step."""
        if isinstance(form, Plain):
            return lambda value, i: value.set(tensors[0](row, step * self.step + i * self.lanes, lanes=self.lanes))
        extra, groups = self.extra(form, tensors[1], row), self.columns // GROUP
        terms = form.terms(lambda base: lambda offset: tensors[0](row, base + offset), extra, step, groups)
        terms = [(factor if factor is None else self.k.keep(factor), vector) for factor, vector in terms]
        scales = [(self.k.keep(scale), least if least is None else self.k.keep(least))
                  for scale, least in form.scales(extra, step, groups)]
        return lambda value, i: self.restore(value, terms, scales, i)

    def add_term(self, vectors, span, scale, source, total):
        """Adds the product with some vectors of a group, which have one scale."""
        product = self.k.local(4)
        offsets = tuple(found.offset for found in vectors)
        product.set(source.sum(span, offsets) if any(map(any, offsets)) else 0)
        for i, found in zip(span, vectors):
            product.add(source.moved(i, found) * self.k.keep(found.bits.astype("float32x4"), 4))
        total.add(product.get() * self.lanes_of(scale))

    def lanes_of(self, value):
        return T.broadcast(self.k.keep(value), 4)

    def extra(self, form, tensor, row):
        return lambda at: self.k.keep(tensor(row, at), dtype="float32" if form.floats else "uint32")

    def words(self, tensor, row, base):
        """Reads the words from a place on, four at a time."""
        found = {}

        def word(offset):
            at = offset // 4 * 4
            if at not in found:
                found[at] = self.k.local(4, "uint32")
                found[at].set(tensor(row, base + at, lanes=4))
            return found[at].lane(offset - at)

        return word
