"""The kinds of kernels of rows: what a call's arrays and options make of them."""
from .rows import Kind, Pass

GATED = ("reglu", "geglu", "swiglu")  # epilogues of templates/linear/epilogue.lua
BITS = ("relu",)  # whose derivatives a bit keeps
PLAIN = ("none",)  # whose derivatives need not be kept
NORMS = {"layer": "layernorm", "rms": "rmsnorm"}  # that are a norm of rows


class Linear(Kind):
    kernel = op = "linear"
    options = ("epilogue", "sm_margin", "plan", "dtype")
    declared = 'str epilogue="none", int sm_margin=0, str plan="", str? dtype=None'
    words = ("f16", "bf16")
    is_aligned = True
    ranks = {"w": 2}
    gradients = {"x": "dx", "w": "dw", "bias": "dbias", "residual": "dy"}
    ends = {"y": "dy"}

    def __init__(self):
        self.forward = Pass(self, "x w bias? residual?", "y kept?")
        self.backward = Pass(self, "x w dy kept?", "dx? dw? dbias?")

    def shapes(self, given, options):
        columns, width = given["w"]
        out = columns // 2 if options["epilogue"] in GATED else columns
        columns = 2 * out if options["epilogue"] in GATED else out
        lead = given["x"][:-1]
        x, y, kept = (*lead, width), (*lead, out), (*lead, -(-out // 32) if options["epilogue"] in BITS else columns)
        return {"x": x, "w": (columns, width), "bias": (columns,), "residual": y, "y": y, "kept": kept, "dy": y, "dx": x,
                "dw": (columns, width), "dbias": (columns,)}

    def texts(self, shapes, given, options, wants):
        return {"width": f"{shapes['x'][-1]}/{shapes['y'][-1]}", "epilogue": options["epilogue"],
                "bias": "grad" if "dbias" in wants else "true" if "bias" in given else "false",
                "residual": "true" if "residual" in given else "false"}

    def takes(self, given, options, wants):
        return ("x", "w") if options["epilogue"] in PLAIN else ("x", "w", "kept")

    def word_of(self, name, word, options):
        return "i32" if name == "kept" and options["epilogue"] in BITS else word


class LinearNorm(Kind):
    kernel, op = "linear", "linear_norm"
    options = ("norm", "eps", "sm_margin", "plan", "dtype")
    declared = 'str norm="layer", float eps=1e-5, int sm_margin=0, str plan="", str? dtype=None'
    words = ("f16", "bf16")
    is_aligned = True
    ranks = {"w": 2}
    gradients = {"x": "dx", "w": "dw", "gamma": "dgamma", "beta": "dbeta", "bias": "dbias", "residual": "dresidual"}
    ends = {"out": "dout", "z": "dz"}

    def __init__(self):
        self.forward = Pass(self, "x w gamma beta? bias? residual?", "out z? mean? rstd?")
        self.backward = Pass(self, "x w dout dz? z gamma mean? rstd", "dx? dw? dresidual dgamma dbeta? dbias?")

    def shapes(self, given, options):
        columns, width = given["w"]
        lead = given["x"][:-1]
        made = dict.fromkeys(("residual", "out", "z", "dout", "dz", "dresidual"), (*lead, columns))
        made.update(dict.fromkeys(("gamma", "beta", "bias", "dgamma", "dbeta", "dbias"), (columns,)))
        made.update(dict.fromkeys(("x", "dx"), (*lead, width)), w=(columns, width), dw=(columns, width), mean=lead, rstd=lead)
        return made

    def texts(self, shapes, given, options, wants):
        return {"width": f"{shapes['x'][-1]}/{shapes['z'][-1]}", "epilogue": NORMS.get(options["norm"], options["norm"]),
                "bias": "grad" if "dbias" in wants else "true" if "bias" in given else "false",
                "residual": "true" if "residual" in given else "false"}

    def takes(self, given, options, wants):
        return ("x", "w", "z", "gamma", "rstd") + (() if options["norm"] == "rms" else ("mean",))

    def numbers(self, options):
        return {"eps": options["eps"]}


class Layernorm(Kind):
    kernel = op = "layernorm"
    options = ("norm", "eps", "plan")
    declared = 'str norm="layer", float eps=1e-5, str plan=""'
    ranks = {"gamma": 1}
    gradients = {"x": "dx", "gamma": "dgamma", "beta": "dbeta", "bias": "dbias", "residual": "dx"}
    ends = {"out": "dout", "z": "dz"}

    def __init__(self):
        self.forward = Pass(self, "x gamma beta? bias? residual?", "out z? mean? rstd?")
        self.backward = Pass(self, "dout dz? gamma mean? rstd z? x? bias? residual?", "dx dgamma dbeta? dbias?")

    def shapes(self, given, options):
        width = given["gamma"][0]
        lead = given["dout" if "dout" in given else "x"][:-1]
        made = dict.fromkeys(("x", "residual", "out", "z", "dout", "dz", "dx"), (*lead, width))
        made.update(dict.fromkeys(("gamma", "beta", "bias", "dgamma", "dbeta", "dbias"), (width,)))
        made.update(mean=lead, rstd=lead)
        return made

    def texts(self, shapes, given, options, wants):
        """Where backward gets z nothing tells what was added: a residual stands for it."""
        return {"width": str(shapes["gamma"][0]), "norm": options["norm"],
                "bias": "grad" if "dbias" in wants else "true" if "bias" in given else "false",
                "residual": "true" if "residual" in given or "dout" in given and "z" in given else "false"}

    def takes(self, given, options, wants):
        """z, where it is in memory in any case."""
        added = ("z",) if "z" in wants else tuple([name for name in ("x", "bias", "residual") if name in given])
        return ("gamma", "rstd") + (() if options["norm"] == "rms" else ("mean",)) + added

    def numbers(self, options):
        return {"eps": options["eps"]}


class LogSoftmax(Kind):
    kernel, op = "logsoftmax", "log_softmax"
    gradients = {"x": "dx"}
    ends = {"y": "dy"}

    def __init__(self):
        self.forward = Pass(self, "x", "y")
        self.backward = Pass(self, "y dy", "dx")

    def shapes(self, given, options):
        shape = tuple(given["y" if "y" in given else "x"])
        return dict.fromkeys(("x", "y", "dy", "dx"), shape)

    def texts(self, shapes, given, options, wants):
        return {"width": str(shapes["x"][-1])}

    def takes(self, given, options, wants):
        return ("y",)


class CrossEntropy(Kind):
    kernel, op = "logsoftmax", "cross_entropy"
    gradients = {"x": "dx"}
    ends = {"loss": "dloss"}

    def __init__(self):
        self.forward = Pass(self, "x target weight?", "loss lse?")
        self.backward = Pass(self, "x target weight? lse dloss", "dx")

    def shapes(self, given, options):
        x = tuple(given["x"])
        made = dict.fromkeys(("target", "loss", "lse", "dloss"), x[:-1])
        made.update(x=x, dx=x, weight=x[-1:])
        return made

    def texts(self, shapes, given, options, wants):
        return {"width": str(shapes["x"][-1]), "target": "true"}

    def takes(self, given, options, wants):
        return ("x", "target", "lse") + ("weight",) * ("weight" in given)


KINDS = Linear(), LinearNorm(), Layernorm(), LogSoftmax(), CrossEntropy()
LINEAR, LINEAR_NORM, LAYERNORM, LOG_SOFTMAX, CROSS_ENTROPY = KINDS
