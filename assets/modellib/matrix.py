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

    def __init__(self, k, parts, columns, dtype):
        self.k, self.columns, self.parts, first = k, columns, [], 0
        for i, part in enumerate(parts):
            tensors = [k.tensor(f"{name}{i or ''}", (part.rows, width), kind)
                       for name, kind, width in part.form.tensors(columns, dtype)]
            self.parts.append((first, part, tensors))
            first += part.rows
        self.plain = all(isinstance(part.form, Plain) for part in parts)
        self.lanes = lanes_of(columns)
        self.step = self.lanes if self.plain else GROUP  # columns that add takes

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
            if isinstance(form, Plain):
                value.set(tensors[0](row, at, lanes=self.lanes))
                continue
            group, groups = at // GROUP, self.columns // GROUP
            extra = self.extra(form, tensors[1], row)
            terms = form.terms(lambda base: lambda offset: tensors[0](row, base + offset), extra, group, groups)
            self.restore(value, terms, form.scales(extra, group, groups), at // 4 % FOURS)
        return value.get()

    def restore(self, value, terms, scales, i):
        """Sets a variable to vector i of a group."""
        if len(scales) == 1:
            scale, least = scales[0]
        elif isinstance(i, int):
            scale, least = scales[i * len(scales) // FOURS]
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

    def add(self, rows, step, sources, totals):
        """Adds to the totals of each row, one for each of the sources, its products with the row in the columns of a step. The rows
        are neighbours."""
        if any(first % len(rows) for first, _, _ in self.parts):  # they may lie in different parts
            for row, sums in zip(rows, totals):
                self.add([row], step, sources, [sums])
            return
        kept = [source.kept for source in sources]
        for form, tensors, first in self.among(rows[0]):
            if len(self.parts) > 1:  # what one branch keeps, another doesn't have
                for source, values in zip(sources, kept):
                    source.kept = dict(values)
            for i, sums in enumerate(totals):
                self.add_row(form, tensors, rows[i] if len(self.parts) == 1 else rows[i] - rows[0] + first, step, sources, sums)
        for source, values in zip(sources, kept):
            source.kept = values

    def add_row(self, form, tensors, row, step, sources, totals):
        if isinstance(form, Plain):
            for i in range(self.step // self.lanes):
                weight = self.k.local(self.lanes)
                weight.set(tensors[0](row, step * self.step + i * self.lanes, lanes=self.lanes))
                for source, total in zip(sources, totals):
                    total.add_product(source.vectors[i], weight)
            return
        extra, groups = self.extra(form, tensors[1], row), self.columns // GROUP
        terms = form.terms(lambda base: self.words(tensors[0], row, base), extra, step, groups)
        scales = form.scales(extra, step, groups)
        length = FOURS // len(scales)
        for half, (scale, least) in enumerate(scales):
            span, scale = range(half * length, (half + 1) * length), self.k.keep(scale)
            for factor, vector in terms:
                self.add_term([vector(i) for i in span], span, scale if factor is None else scale * factor, sources, totals)
            if least is not None:
                least = self.lanes_of(least)
                for source, total in zip(sources, totals):
                    total.add(-(source.sum(span) * least))

    def add_many(self, runs, group, sources, totals):
        """Adds to the totals of each row, one for each of many sources, its products with the row in a group of columns. Each run has
        rows that are neighbours. sources reads vector i of the group, the first time or again.

        Restoring a value once costs less than what its bits cost each source. Written out, all of a group take long to compile."""
        if len(self.parts) == 1:
            runs = [sum(runs, [])]
        elif any(first % len(run) for first, _, _ in self.parts for run in runs):  # they may lie in different parts
            runs = [[row] for run in runs for row in run]
        totals = iter(totals)
        for run in runs:
            mine = [next(totals) for _ in run]
            for form, tensors, first in self.among(run[0]):
                rows = run if len(self.parts) == 1 else [row - run[0] + first for row in run]
                restorers = [self.restorer(form, tensors, row, group) for row in rows]
                with T.serial(0, FOURS) as i:
                    vectors = sources(i, run is runs[0])
                    for restore, sums in zip(restorers, mine):
                        value = restore(i)
                        for vector, total in zip(vectors, sums):
                            total.add_product(vector, value)

    def restorer(self, form, tensors, row, group):
        """A function that restores vector i of a group."""
        value = self.k.local(4)
        if isinstance(form, Plain):
            def read(i):
                value.set(tensors[0](row, group * GROUP + i * 4, lanes=4))
                return value

            return read
        extra, groups = self.extra(form, tensors[1], row), self.columns // GROUP
        terms = form.terms(lambda base: lambda offset: tensors[0](row, base + offset), extra, group, groups)
        terms = [(factor if factor is None else self.k.keep(factor), vector) for factor, vector in terms]
        scales = [(self.k.keep(scale), least if least is None else self.k.keep(least))
                  for scale, least in form.scales(extra, group, groups)]

        def restore(i):
            self.restore(value, terms, scales, i)
            return value

        return restore

    def add_term(self, vectors, span, scale, sources, totals):
        """Adds the products with some vectors of a group, which have one scale."""
        products = [self.k.local(4) for _ in sources]
        offsets = tuple(found.offset for found in vectors)
        for product, source in zip(products, sources):
            product.set(source.sum(span, offsets) if any(map(any, offsets)) else 0)
        for i, found in zip(span, vectors):
            bits = self.k.keep(found.bits.astype("float32x4"), 4)
            for product, source in zip(products, sources):
                product.add(source.moved(i, found) * bits)
        scale = self.lanes_of(scale)
        for product, total in zip(products, totals):
            total.add(product.get() * scale)

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
