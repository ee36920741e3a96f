"""sampled.py - some of the cases of functions that pytest.mark.parametrize gives half a million: only those that are chosen are
made. A case is a pair of a function and a number, which counts the values of its marks in pytest's own order."""
import bisect
import collections
import math
import random
import re

import pytest

FEW = 80  # cases of a function that is run whole


class Marks:
    """What a function is parametrized by."""

    def __init__(self, marks):
        self.marks = [mark for mark in marks if mark.name == "parametrize"]
        self.axes = [(names(mark.args[0]), list(mark.args[1])) for mark in self.marks]
        self.count = math.prod(len(values) for _, values in self.axes)

    def places(self, number):
        """Of the values of each axis, the last of which changes fastest."""
        made = []
        for _, values in reversed(self.axes):
            number, place = divmod(number, len(values))
            made.append(place)
        return made[::-1]

    def name(self, number):
        """As pytest writes it between brackets."""
        return "-".join(written(name, value, place)
                        for (names, values), place in zip(self.axes, self.places(number))
                        for name, value in zip(names, values[place] if len(names) > 1 else [values[place]]))

    def values(self, number):
        made = []
        for (names, values), place in zip(self.axes, self.places(number)):
            made += values[place] if len(names) > 1 else [values[place]]
        return made

    def names(self):
        return [name for names, _ in self.axes for name in names]

    def title(self, function, number):
        return f"{function}[{self.name(number)}]" if self.axes else function


def names(text):
    return [name.strip() for name in text.split(",")] if isinstance(text, str) else list(text)


def written(name, value, place):
    if value is None or isinstance(value, (str, int, float)):
        return str(value)
    return value.__name__ if isinstance(getattr(value, "__name__", None), str) else f"{name}{place}"


def chosen(module, cases, seed, match=""):
    """The sample, a list of (function, number): all cases of functions with few, then so many of all others; 0: all."""
    few, many, total = [], [], 0
    for function, x in vars(module).items():
        if not function.startswith("test") or not callable(x):
            continue
        marks = Marks(getattr(x, "pytestmark", ()))
        numbers = range(marks.count)
        if match:
            numbers = [i for i in numbers if re.search(match, marks.title(function, i))]
        if len(numbers) <= FEW:
            few += [(function, i) for i in numbers]
        else:
            many.append((total, function, numbers))
            total += len(numbers)
    picked = random.Random(seed).sample(range(total), min(cases or total, total))
    starts = {i: (function, numbers) for i, function, numbers in many}
    firsts = sorted(starts)
    return few + [at(i, firsts, starts) for i in picked]


def at(i, firsts, starts):
    """Case number i of all functions with many."""
    first = firsts[bisect.bisect_right(firsts, i) - 1]
    function, numbers = starts[first]
    return function, numbers[i - first]


class Sample:
    """A plugin of pytest: makes the cases of a sample and no others, and puts them in its order."""

    def __init__(self, choose):
        self.choose, self.cases = choose, None  # choose: the sample of a module

    def of(self, module):
        if self.cases is None:
            self.cases = self.choose(module)
            self.by_function = collections.defaultdict(list)
            for function, number in self.cases:
                self.by_function[function].append(number)
        return self.by_function

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc):
        """In place of pytest's own: it finds no more marks."""
        definition = metafunc.definition
        marks = Marks(definition.iter_markers())
        numbers = self.of(metafunc.module)[metafunc.function.__name__]
        definition.own_markers[:] = [mark for mark in definition.own_markers if mark.name != "parametrize"]
        if marks.axes:
            metafunc.parametrize(marks.names(), [marks.values(i) for i in numbers], ids=[marks.name(i) for i in numbers])

    def pytest_collection_modifyitems(self, items):
        waiting = collections.defaultdict(collections.deque)
        for item in items:
            waiting[item.originalname].append(item)
        items[:] = [waiting[function].popleft() for function, _ in self.cases or ()]
