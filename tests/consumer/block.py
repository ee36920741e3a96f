#!/usr/bin/env python3
"""block.py - what block.c computes, judged against float64.

    block.py PROGRAM [host|cuda:N [WIDTH B N relu|gelu bf16|f16 [graph] [TIMES]]]

The program gets random inputs and its results are compared, each by the norm of its error over the norm of what it should be.
What it should be is the block in float64 of the same 16-bit inputs. Each launch rounds what it writes, and attention rounds the
weights and their gradients that it multiplies, so that a block with no other error is still off: by 0.4 % in bf16, and by 4 % where
a rounding moves a number across the corner of relu. The same code says how much that is when it rounds at the same places. A result
may have twice that error, which is FlashAttention's rule for a kernel beside a plain computation. The program's errors are 1.0 to
1.15 of it, those of few rows up to 1.4; a gradient that misses a part has ten times as much and more.

The formulas of the gradients, which both computations share, are checked by finite differences first."""
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HEAD, EPS, MOST = 64, 1e-5, 2.0
EXTENTS = {  # in units of the width; 0: rows of x
    "x": (0, 1), "dy": (0, 1), "w_qkv": (3, 1), "w_o": (1, 1), "w_1": (4, 1), "w_2": (1, 4), "b_o": (1,), "b_1": (4,), "b_2": (1,),
    "gamma1": (1,), "beta1": (1,), "gamma2": (1,), "beta2": (1,)}


# ---- numbers of 16 bits ----

def to_bf16(x):
    """The bits nearest to x, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


TO = {"bf16": to_bf16, "f16": lambda x: x.astype(np.float16).view(np.uint16)}
FROM = {"bf16": from_bf16, "f16": lambda bits: bits.view(np.float16).astype(np.float64)}


# ---- the block (mathematics.md sections 2, 3 and 5); r rounds what a launch writes or multiplies ----

def relu(h):
    return np.maximum(h, 0), (h > 0).astype(h.dtype)


def gelu(h):
    a = math.sqrt(2 / math.pi)
    t = np.tanh(a * (h + 0.044715 * h**3))
    return h * (1 + t) / 2, (1 + t) / 2 + h * (1 - t * t) * a * (1 + 0.134145 * h * h) / 2


def norm(z, gamma, beta):
    """Rows normalised, and what backward needs of them."""
    centred = z - z.mean(1, keepdims=True)
    rstd = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + EPS)
    xhat = centred * rstd
    return xhat * gamma + beta, (xhat, rstd)


def norm_backward(dout, gamma, kept):
    """The gradients of z, gamma and beta."""
    xhat, rstd = kept
    gy = dout * gamma
    dz = rstd * (gy - gy.mean(1, keepdims=True) - xhat * (gy * xhat).mean(1, keepdims=True))
    return dz, (dout * xhat).sum(0), dout.sum(0)


class Block:
    """t: the inputs by name; act: relu or gelu; r: a function that rounds."""

    def __init__(self, t, b, act, r):
        self.t, self.b, self.act, self.r = t, b, act, r

    def heads(self, rows):
        return rows.reshape(self.b, -1, rows.shape[1] // HEAD, HEAD).transpose(0, 2, 1, 3)

    def rows(self, heads):
        return heads.transpose(0, 2, 1, 3).reshape(-1, heads.shape[1] * HEAD)

    def forward(self):
        t, r = self.t, self.r
        self.q, self.k, self.v = (self.heads(part) for part in np.split(r(t["x"] @ t["w_qkv"].T), 3, axis=1))
        s = self.q @ self.k.transpose(0, 1, 3, 2) / math.sqrt(HEAD)
        s = np.where(np.tri(s.shape[2], dtype=bool), s, -np.inf)
        p = np.exp(s - s.max(3, keepdims=True))
        self.p = p / p.sum(3, keepdims=True)
        self.o = r(self.rows(r(self.p) @ self.v))
        out, self.norm1 = norm(r(self.o @ t["w_o"].T + t["b_o"] + t["x"]), t["gamma1"], t["beta1"])
        self.a = r(out)
        value, self.factor = self.act(self.a @ t["w_1"].T + t["b_1"])
        self.u, self.factor = r(value), r(self.factor)
        out, self.norm2 = norm(r(self.u @ t["w_2"].T + t["b_2"] + self.a), t["gamma2"], t["beta2"])
        return r(out)

    def backward(self):
        t, r = self.t, self.r
        d = {}
        dz2, d["gamma2"], d["beta2"] = norm_backward(t["dy"], t["gamma2"], self.norm2)
        dz2 = r(dz2)
        d["w_2"], d["b_2"] = dz2.T @ self.u, dz2.sum(0)
        dh = r(r(dz2 @ t["w_2"]) * self.factor)
        d["w_1"], d["b_1"] = dh.T @ self.a, dh.sum(0)
        da = r(dh @ t["w_1"] + dz2)
        dz1, d["gamma1"], d["beta1"] = norm_backward(da, t["gamma1"], self.norm1)
        dz1 = r(dz1)
        d["w_o"], d["b_o"] = dz1.T @ self.o, dz1.sum(0)
        dqkv = self.attention_backward(r(dz1 @ t["w_o"]))
        for name, part in zip("qkv", np.split(dqkv, 3, axis=1)):
            d["w_" + name] = part.T @ t["x"]
        d["x"] = dqkv @ t["w_qkv"] + dz1
        return {name: r(gradient) for name, gradient in d.items()}

    def attention_backward(self, dout):
        r = self.r
        delta = self.heads(dout * self.o).sum(3, keepdims=True)
        dout = self.heads(dout)
        ds = r(self.p * (dout @ self.v.transpose(0, 1, 3, 2) - delta)) / math.sqrt(HEAD)
        dq, dk, dv = ds @ self.k, ds.transpose(0, 1, 3, 2) @ self.q, r(self.p).transpose(0, 1, 3, 2) @ dout
        return r(np.concatenate([self.rows(x) for x in (dq, dk, dv)], axis=1))


# ---- what is compared ----

def inputs(random, rows, width):
    """Weights as large as keeps the size of rows, but twice that in w_qkv, so that scores differ: their gradients count too."""
    made = {}
    for name, extents in EXTENTS.items():
        extents = [rows if e == 0 else e * width for e in extents]
        made[name] = random.standard_normal(extents)
        if name.startswith("w"):
            made[name] *= (2 if name == "w_qkv" else 1) / math.sqrt(extents[1])
        elif name.startswith(("b_", "beta")):
            made[name] *= 0.5
        elif name.startswith("gamma"):
            made[name] = 1 + 0.2 * made[name]
    return made


def same(x):
    return x


def differences(act):
    """Each gradient along a direction is the slope of <dy, y> along it."""
    random = np.random.default_rng(5)
    t = inputs(random, 2 * 7, HEAD)
    block = Block(t, 2, act, same)
    block.forward()
    d = block.backward()
    d["w_qkv"] = np.concatenate([d["w_" + name] for name in "qkv"])
    for name in t:
        if name == "dy":
            continue
        way = random.standard_normal(t[name].shape)
        loss = [(Block({**t, name: t[name] + e * way}, 2, act, same).forward() * t["dy"]).sum() for e in (1e-6, -1e-6)]
        slope, expected = (loss[0] - loss[1]) / 2e-6, (d[name] * way).sum()
        if not abs(slope - expected) <= 1e-5 * (1 + np.abs(d[name] * way).sum()):
            sys.exit(f"{act.__name__}: d{name} along a direction is {expected}, by differences {slope}")


def run(program, device, t, width, b, act, dtype, words):
    """The results of the program, by name as in Block.backward, and what it prints."""
    rows = len(t["x"])
    with tempfile.TemporaryDirectory() as directory:
        for name, x in t.items():
            TO[dtype](x).tofile(f"{directory}/{name}.bin")
        command = [program, directory, device, width, b, rows // b, act.__name__, dtype, *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        read = lambda name, shape: FROM[dtype](np.fromfile(f"{directory}/{name}.bin", np.uint16)).reshape(shape)
        found = {"d" + name: read("d" + name, x.shape) for name, x in t.items() if name != "dy"}
        found["y"] = read("y", t["x"].shape)
    found.update(zip(("dw_q", "dw_k", "dw_v"), np.split(found.pop("dw_qkv"), 3)))
    return found, done.stdout


def case(program, device, width, b, n, act, dtype, words=(), seed=1):
    """Prints the worst result, and where one is wrong all of them; true where all are right."""
    t = {name: FROM[dtype](TO[dtype](x)) for name, x in inputs(np.random.default_rng(seed), b * n, width).items()}
    found, said = run(program, device, t, width, b, act, dtype, words)
    made = []
    for rounding in (same, lambda x: FROM[dtype](TO[dtype](x))):
        block = Block(t, b, act, rounding)
        y = block.forward()
        made.append({"y": y, **{"d" + name: d for name, d in block.backward().items()}})
    error = lambda x, name: np.linalg.norm(x[name] - made[0][name]) / np.linalg.norm(made[0][name])
    errors = {name: (error(found, name), error(made[1], name)) for name in made[0]}
    assert errors.keys() == found.keys()
    share = {name: of / plain / MOST for name, (of, plain) in errors.items()}
    wrong = [name for name in share if not share[name] <= 1]
    worst = max(share, key=share.get)
    print(f"{dtype} {act.__name__} width {width} b {b} n {n}:", "wrong" if wrong else "right", end="")
    print(f", {worst} at {share[worst]:.2f} of what it may be off", *said.splitlines(), sep="; ", flush=True)
    for name in errors if wrong else ():
        print("  %-8s error %.2e, of roundings alone %.2e%s" % (name, *errors[name], "  <--" if name in wrong else ""))
    return not wrong


def main():
    program, device, *own = sys.argv[1:] if len(sys.argv) > 2 else [*sys.argv[1:], "host"]
    for act in relu, gelu:
        differences(act)
    b, n = (1, 40) if device == "host" else (2, 500)
    cases = [(512, 2, 24, relu, "bf16", ["graph"]), (1024, b, n, gelu, "bf16"), (512, b, n, gelu, "f16")]
    if own:
        cases = [(*map(int, own[:3]), {"relu": relu, "gelu": gelu}[own[3]], own[4], own[5:])]
    sys.exit(not all(case(program, device, *which) for which in cases))


if __name__ == "__main__":
    main()
