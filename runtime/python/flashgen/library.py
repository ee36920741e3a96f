"""The shared library: where it lies, its functions, and the structs of flashgen.h.

tests/python/test_library.py has a C compiler confirm that the structs are those of the header."""
import ctypes as c
import os
import pathlib

from .errors import FlashgenMissing

VERSION = "0.1.0"  # FG_VERSION of the header
SONAME = "libflashgen.so.0.1"


def struct(name, *members):
    """A struct of the header: pairs of a type and the names of its members, in their order."""
    fields = [(member, kind) for kind, names in members for member in names.split()]
    return type(name, (c.Structure,), {"_fields_": fields})


def sized(kind, **members):
    """A struct as FG_INIT makes it: all zero, but for its size and the members."""
    return kind(size=c.sizeof(kind), **members)


Spec = struct(
    "fg_spec",
    (c.c_size_t, "size"),
    (c.c_char_p, "kernel pass dtype head_dim mask bias bias_dims bias_dtype grad_dtype normalizer deterministic "
                 "family block_q block_kv stages warps parts score inputs define width warps_per_key key_parts "
                 "q_layout kv_layout parts_dtype rotary rotary_dim rotary_dtype batch_invariant sink dropout "
                  "max_logit residual norm target epilogue slices shard o_dtype dqkv_dtype kv_dtype descale_block latent"))
Shape = struct(
    "fg_shape",
    (c.c_size_t, "size"),
    (c.c_int64, "b h hk nq nk align rows tokens_q tokens_k pages page parts positions slices"))
Tensor = struct("fg_tensor", (c.c_void_p, "data"), (c.c_int64 * 4, "stride"))
InputValue = struct("fg_input_value", (c.c_size_t, "size"), (Tensor, "value grad"), (c.c_double, "number"))
Args = struct(
    "fg_args",
    (c.c_size_t, "size"),
    (Tensor, "q k v o dout dq dk dv bias dbias lse dlse"),
    (c.c_uint32, "given"),
    (c.c_float, "scale"),
    (c.c_void_p, "inputs"),
    (c.c_int64, "n_inputs"),
    (Tensor, "x y dy dx"),
    (c.c_int64, "sm_margin"),
    (Tensor, "starts_q starts_k used_q used_k first_k rows table o_parts lse_parts k_new v_new q_out rotary_cos "
             "rotary_sin row_positions sink dsink r r_parts"),
    (c.c_float, "sigmoid_bias"),
    (Tensor, "u u_parts"),
    (c.c_float, "keep"),
    (Tensor, "seed max_logit residual gamma beta out mean rstd z dz dgamma dbeta target weight loss dloss"),
    (c.c_float, "eps"),
    (Tensor, "w dw kept dresidual dx_more q_ranges k_ranges kinds pos_q pos_k whole_q "
             "whole_k q_descale k_descale v_descale"))
Config = struct(
    "fg_config",
    (c.c_size_t, "size"),
    (c.c_char_p, "device templates cache plan"),
    (c.c_int, "no_fallback"),
    (c.c_uint64, "seed"),
    (c.c_void_p, "warn warn_context"),
    (c.c_int, "jit n_zoos"),
    (c.c_void_p, "zoos"),
    (c.c_int, "n_wisdom"),
    (c.c_void_p, "wisdom"))
Info = struct("fg_info", (c.c_size_t, "size"), (c.c_char_p, "name figures"), (c.c_int, "from_cache"))
Counts = struct("fg_counts", (c.c_size_t, "size"), (c.c_uint64, "cache_hits choices compiles loads zoo_hits"))
STRUCTS = (Spec, Shape, Tensor, InputValue, Args, Config, Info, Counts)

GIVEN = {"scale": 1, "sigmoid_bias": 2, "keep": 4, "eps": 8}  # FG_GIVEN_... of the numbers of a launch

FUNCTIONS = {  # result, arguments; a pointer to a struct or an opaque one is a c_void_p
    "fg_error": (c.c_char_p,),
    "fg_version": (c.c_char_p,),
    "fg_open": (c.c_int, c.c_void_p, c.c_void_p),
    "fg_define": (c.c_int, c.c_void_p, c.c_void_p, c.c_void_p),
    "fg_release": (None, c.c_void_p),
    "fg_op_inputs": (c.c_char_p, c.c_void_p),
    "fg_input_extents": (c.c_int, c.c_void_p, c.c_int64, c.c_void_p, c.c_void_p),
    "fg_select": (c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p),
    "fg_workspace_bytes": (c.c_size_t, c.c_void_p, c.c_void_p),
    "fg_launch": (c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p),
    "fg_kernel_info": (c.c_int, c.c_void_p, c.c_void_p),
    "fg_context_counts": (None, c.c_void_p, c.c_void_p),
}

_loaded = None


def path():
    """The library's file: FLASHGEN_LIBRARY, else the one beside this file."""
    return os.environ.get("FLASHGEN_LIBRARY") or str(pathlib.Path(__file__).with_name(SONAME))


def library():
    """The library, loaded when it is first needed. Two threads that load it at once get the same one."""
    global _loaded
    if _loaded is None:
        _loaded = load(path())
    return _loaded


def load(file):
    try:
        loaded = c.CDLL(file)
    except OSError as error:
        raise FlashgenMissing(f"flashgen's library cannot be loaded: {error}") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    found = loaded.fg_version().decode()
    if found != VERSION:
        raise FlashgenMissing(f"{file} is version {found}; this package needs {VERSION}")
    return loaded
