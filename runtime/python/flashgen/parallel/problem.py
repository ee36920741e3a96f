"""One call: its group, its options, and the arguments of each launch.

Launches are attention's own, of parts of the whole: their results are float32, and the sink is left to the end."""
import numbers
import re

import torch
import torch.distributed as dist

from ..attention import attention, attention_backward
from ..options import check_expressions, definitions
from ..spec import read_inputs
from . import slices
from .bands import band_of
from .order import chunk_count, chunk_length, chunks_of
from .steps import Geometry

METHODS = ("ring", "gather", "alltoall")
WORDS = {"s", "b", "h", "hk", "softcap", "min", "max", "abs", "exp", "log", "tanh", "sqrt", "sigmoid", "floor"}


def names_in(text):
    return set(re.findall(r"[A-Za-z_]\w*", text or ""))


class Problem:
    """q and k [b, n, h, d], or packed [tokens, h, d]; all that is checked here is checked before ranks talk."""

    def __init__(self, group, method, order, starts_q, starts_k, listed, q, k, v, options):
        self.group, self.method, self.order = group, method, order
        self.n, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self.ranks = [dist.get_global_rank(group, i) if group is not None else i for i in range(self.n)]
        if method not in METHODS:
            raise ValueError(f'method is {method!r}; expected "ring", "gather" or "alltoall"')
        self.chunks = chunk_count(order, self.n)
        self.own = len(chunks_of(order, self.n, 0))
        for name, x in {"q": q, "k": k, "v": v}.items():
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name} is a {type(x).__name__}; expected a tensor of PyTorch")
        self.is_packed = starts_q is not None
        if starts_k is not None and not self.is_packed:
            raise ValueError("starts_k is given, and starts_q is not: rows and keys are packed together")
        self.slices = listed  # (q_ranges, k_ranges, kinds) or None
        self.is_flat = self.is_packed or listed is not None
        axes = "[tokens, h, d]" if self.is_flat else "[b, n, h, d]"
        for name, x in {"q": q, "k": k, "v": v}.items():
            if x.dim() != axes.count(",") + 1:
                raise ValueError(f"{name} has shape {tuple(x.shape)}; expected {axes}")
            chunk_length(f"a rank's {name} has length", x.shape[-3], order, self.own)
        if k.shape[:-1] != v.shape[:-1]:
            raise ValueError(f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: all but the last extents have to be "
                             "equal")
        self.length_q, self.length_k = q.shape[-3] // self.own, k.shape[-3] // self.own  # of a chunk, of all packed ones
        self.options = options
        check_expressions(options["mask"], options["score"])
        definitions(options["define"])
        read_inputs(options["inputs"] or {})
        self.numbers = {name: x for name, x in (options["inputs"] or {}).items() if isinstance(x, numbers.Real)}
        self.all_inputs = set(options["inputs"] or ())
        self.axes = {name: x[0] for name, x in (options["inputs"] or {}).items() if name not in self.numbers}
        self.check_inputs()
        self.has_dropout = bool(options["dropout"])
        self.starts = {"q": starts_q, "k": starts_q if starts_k is None else starts_k}
        whole = (None, None) if self.is_packed else (q.shape[-3] * self.n, k.shape[-3] * self.n)
        self.whole_q, self.whole_k = whole
        is_even = self.starts["q"] is self.starts["k"] if self.is_packed else whole[0] == whole[1]
        self.geometry = Geometry(self.n, order, band_of(options["mask"], self.numbers), *whole, is_even, self.is_plain())
        if listed is not None:
            self.check_slices()
        if self.is_packed:
            self.read_starts()

    def check_slices(self):
        if self.is_packed:
            raise ValueError("starts_q is given: the tokens of slices are all of one batch")
        for name, x, axes in zip(("q_ranges", "k_ranges", "kinds"), self.slices, ("[slices, 2]", "[slices, 2]", "[slices]")):
            if not isinstance(x, torch.Tensor) or x.dtype != torch.int32 or x.dim() != axes.count(",") + 1:
                raise ValueError(f"{name} is no int32 tensor {axes}")
        if self.method != "alltoall" and (self.options["mask"] is not None or not self.is_plain()):
            raise NotImplementedError(f"{self.method} cuts slices, in which a mask, score or dropout cannot ask where a "
                                      "row or key lies: take alltoall")

    def check_inputs(self):
        for name, axes in self.axes.items():
            if names_in(axes) & {"q", "k", "nq", "nk"}:
                raise NotImplementedError(f"inputs: {name} has axes [{axes}]: an input that lies along rows or keys is not cut "
                                          "to the parts that ranks have")

    def is_plain(self):
        """Whether only the mask asks where a pair lies."""
        known = WORDS | self.numbers.keys() | self.axes.keys()
        return not self.has_dropout and not self.options["define"] and names_in(self.options["score"]) <= known

    def read_starts(self):
        """What launches need of packed sequences, on their device."""
        self.lengths, self.begins = {}, {}
        for name, starts in self.starts.items():
            if starts.dtype != torch.int32 or starts.dim() != 1 or len(starts) < 2:
                raise ValueError(f"starts_{name} is {starts.dtype} of shape {tuple(starts.shape)}; expected int32 [b + 1]")
            if starts.device.type == "cpu" and bool((starts % self.chunks).any()):
                raise ValueError(f"starts_{name}: {self.order} order over {self.n} ranks needs lengths that are multiples of "
                                 f"{self.chunks}; pad the sequences")
            self.lengths[name] = (starts[1:] - starts[:-1]) // self.chunks  # of a chunk
            self.begins[name] = starts // self.n

    # ---- a launch ----

    def rows(self, x, run, length, axis=1):
        """A run of a dense tensor's rows or keys; None: all."""
        return x if run is None or self.is_flat else x.narrow(axis, run * length, length)

    def places(self, launch, source):
        """The arguments that say where rows and keys of a launch lie; source: whose keys they are, None: of all ranks."""
        made = {}
        if self.slices is not None:
            made.update(zip(("q_ranges", "k_ranges", "kinds"), self.slices_between(source)))
        if self.is_packed:
            for name, run in (("q", launch.q), ("k", launch.k)):
                begins = self.starts[name] if name == "k" and source is None else self.begins[name]
                if run is not None:
                    shift = torch.cat((self.lengths[name], self.lengths[name].new_zeros(1))) * run
                    begins, made["used_" + name] = begins + shift, self.lengths[name]
                made["starts_" + name] = begins
        if launch.is_placed:
            sizes = self.lengths if self.is_packed else {"q": self.length_q, "k": self.length_k}
            chunk_q = chunks_of(self.order, self.n, self.rank)[launch.q]
            chunk_k = 0 if source is None else chunks_of(self.order, self.n, source)[launch.k]
            made.update(pos_q=sizes["q"] * chunk_q, pos_k=sizes["k"] * chunk_k, whole_q=sizes["q"] * self.chunks,
                        whole_k=sizes["k"] * self.chunks)
        return made

    def slices_between(self, source):
        """The list of this rank's rows and the keys of another one, or of all."""
        key_runs = [(0, self.whole_k, 0)] if source is None else self.runs(source, self.length_k)
        return slices.cut(*self.slices, self.whole_q, self.whole_k, self.runs(self.rank, self.length_q), key_runs)

    def runs(self, rank, length):
        """(where it begins in the whole, its length, where it begins here) of a rank's chunks."""
        return [(chunk * length, length, i * length) for i, chunk in enumerate(chunks_of(self.order, self.n, rank))]

    def names(self, launch):
        """The inputs of a launch: one without a mask has none that the mask alone names."""
        return self.all_inputs if launch.is_masked else names_in(self.options["score"])

    def declared(self, name, x):
        """An input that is an array, as it is given."""
        axes, _, *more = self.options["inputs"][name]
        return (axes, x, *more)

    def arguments(self, launch, source, inputs):
        options = dict(self.options)
        if not launch.is_masked:
            options["mask"] = None
        given = {**self.numbers, **{name: self.declared(name, x) for name, x in inputs.items()}}
        options["inputs"] = {name: x for name, x in given.items() if name in self.names(launch)} or None
        return {**options, **self.places(launch, source)}

    def forward(self, launch, source, q, k, v, inputs, out, return_max_logit):
        """(o, lse) or (o, lse, max_logit) of the launch's rows; o is out."""
        return attention(self.rows(q, launch.q, self.length_q), self.rows(k, launch.k, self.length_k),
                         self.rows(v, launch.k, self.length_k), return_lse=True, return_max_logit=return_max_logit,
                         out=out, o_dtype="f32", **self.arguments(launch, source, inputs))

    def backward(self, launch, source, dout, q, k, v, out, lse, dlse, inputs, wanted):
        """The Gradients of the launch's rows and keys. out, lse: of all keys."""
        of_rows = {name: self.rows(x, launch.q, self.length_q) for name, x in (("dout", dout), ("q", q), ("out", out))}
        of_lse = {name: self.rows(x, launch.q, self.length_q, 2) for name, x in (("lse", lse), ("dlse", dlse))
                  if x is not None}
        return attention_backward(of_rows["dout"], of_rows["q"], self.rows(k, launch.k, self.length_k),
                                  self.rows(v, launch.k, self.length_k), of_rows["out"], **of_lse,
                                  wanted=[name for name in wanted if name in self.names(launch)],
                                  grad_dtype="f32", **self.arguments(launch, source, inputs))
