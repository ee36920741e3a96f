"""Each mistake is one sentence of one kind of exception, and nothing is launched."""
from case import Case, flashgen, main, np
from flashgen import call

B, H, HK, NQ, NK, D = 2, 4, 2, 5, 9, 16


def zeros(*shape, dtype="f2"):
    return np.zeros(shape, dtype)


Q, K = zeros(B, NQ, H, D), zeros(B, NK, HK, D)
TOKENS, STARTS = zeros(9, HK, D), np.array([0, 4, 9], "i4")
USED = np.array([9, 4], "i4")


class Errors(Case):
    def setUp(self):
        self.launch = call.launch
        call.launch = lambda *_: self.fail("it was launched")

    def tearDown(self):
        call.launch = self.launch

    def wrong(self, kind, sentence, q=Q, k=K, v=K, **options):
        self.says(kind, sentence, flashgen.attention, q, k, v, **options)

    def test_arrays(self):
        self.wrong(TypeError, "a list is given; expected an array of NumPy or a tensor of PyTorch", q=[1.0])
        self.wrong(TypeError, "v is a list, q a ndarray: they have to be alike", v=[1.0])
        self.wrong(TypeError, "q is float64: kernels compute float16 and bfloat16", q=Q.astype("f8"), k=K.astype("f8"),
                   v=K.astype("f8"))
        self.wrong(TypeError, "q is >f2: kernels compute", q=Q.astype(">f2"), k=K.astype(">f2"), v=K.astype(">f2"))
        self.wrong(TypeError, "k is float32 and q float16: they have to be equal", k=K.astype("f4"))
        self.wrong(TypeError, "q is float16, which is computed as it is: dtype='bf16' is for float32", dtype="bf16")
        self.wrong(ValueError, "dtype is 'fp8'; expected \"bf16\" or \"f16\"", dtype="fp8")

    def test_shapes(self):
        self.wrong(ValueError, "q has shape (5, 4, 16); expected [b, nq, h, d]", q=Q[0])
        self.wrong(ValueError, "k has shape (9, 2, 16); expected [b, nk, hk, d]", k=K[0])
        self.wrong(ValueError, "k has shape (2, 9, 2, 16) and v (2, 8, 2, 16): all but the last", v=K[:, :8])
        self.wrong(ValueError, "q has 16 columns and k 8: they have to be as many", k=K[..., :8])
        self.wrong(ValueError, "q has 4 heads, which is not a multiple of the 3 of k", k=zeros(B, NK, 3, D),
                   v=zeros(B, NK, 3, D))
        self.wrong(ValueError, "k has 1 sequences, q 2: they have to be as many", k=K[:1], v=K[:1])
        self.wrong(ValueError, "head_dim", q=zeros(B, NQ, H, 584), k=zeros(B, NK, HK, 584), v=zeros(B, NK, HK, 584))

    def test_bias_and_sink(self):
        self.wrong(ValueError, "bias has shape (2, 4, 5, 8); expected (2, 4, 5, 9), or 1 for any of its extents",
                   bias=zeros(B, H, NQ, 8))
        self.wrong(ValueError, "bias has shape (5, 9); expected", bias=zeros(NQ, NK))
        self.wrong(TypeError, "bias is float64; expected float16 or bfloat16 or float32", bias=zeros(1, 1, 1, 1, dtype="f8"))
        self.wrong(ValueError, "sink has shape (2,); expected (4,)", sink=zeros(HK, dtype="f4"))
        self.wrong(TypeError, "sink is int32; expected", sink=zeros(H, dtype="i4"))

    def test_expressions(self):
        self.wrong(ValueError, 'did you mean "causal"', mask="causl")
        self.wrong(ValueError, "slope", score="s + slope[h]")
        self.wrong(TypeError, 'mask is a ndarray; expected an expression, a text. An array is an input that it reads: mask="seen[b, '
                   'k] != 0", inputs={"seen": ("b, k", x)} with x in int32', mask=np.ones((NQ, NK), bool))
        self.wrong(TypeError, "score is a float; expected an expression, a text", score=1.0)
        self.wrong(ValueError, "expected", score="s +")
        self.wrong(ValueError, 'there is no "softmaxx" (did you mean "softmax"?)', normalizer="softmaxx")
        self.says(ValueError, 'there is no "gleu" (did you mean "gelu"?)', flashgen.linear, Q, zeros(8, D), epilogue="gleu")

    def test_texts(self):
        """A text ends where it ends, and a letter is quoted whole or not at all."""
        self.wrong(ValueError, "mask: 'causal\\x00 && k > 2' has a zero byte", mask="causal\0 && k > 2")
        self.wrong(ValueError, "has half a letter", mask="k <= \udcff")
        self.wrong(ValueError, 'mask: column 6: expected a value, found "π"\n  k <= π\n       ^', mask="k <= π")
        self.wrong(ValueError, f'column 55: expected a value, found "é"\n  {36 * " "}é\n  {36 * " "}^', mask="k <=" + 50 * " " + "é")
        self.wrong(ValueError, "x?", mask="k <= " + 66 * "x" + "é")

    def test_inputs(self):
        slope = np.ones(H, "f4")
        self.wrong(TypeError, "inputs: slope is array", score="alibi(slope)", inputs={"slope": slope})
        self.wrong(TypeError, "inputs: width is True", mask="window(width, 0)", inputs={"width": True})
        self.wrong(ValueError, "inputs: slope has shape (4,); expected (2,)", score="s + slope[b]",
                   inputs={"slope": ("b", slope)})
        self.wrong(ValueError, "inputs: slope has shape (4,); expected (2, 4)", score="s + slope[b, h]",
                   inputs={"slope": ("b, h", slope)})
        self.wrong(TypeError, "inputs: slope is float64; expected", score="alibi(slope)",
                   inputs={"slope": ("h", slope.astype("f8"))})
        for axes, why in (("n", '"n" is no name, input or definition'), ("h +", "an extent is an expression in nq and nk"),
                          ("1 / 0", "division by a constant 0"), ("1 / (nq - 5)", "overflows or divides by 0"), ("nq - 6", "it is -1 at"),
                          ("9**9**7", "expected a value"), ("h; 1", "are no axes"), ("h], a=f32[h", "are no axes"),
                          ("(lambda: ().__class__)() and 4", "are no axes")):
            self.wrong(ValueError, why, score="alibi(slope)", inputs={"slope": (axes, slope)})
        self.wrong(ValueError, "inputs: 'a=int, b' is no name", mask="k < b", inputs={"a=int, b": 3})
        self.wrong(TypeError, "inputs is a tuple; expected a dict", inputs=(1, 2))
        self.wrong(ValueError, "inputs: n is an int of 81 bits", mask="k < n", inputs={"n": 1 << 80})
        self.wrong(ValueError, "inputs.slope: declared, but no point uses it", inputs={"slope": ("h", slope)})
        for extra in (1.0, ("h", slope)):
            self.wrong(ValueError, "inputs: mask and score do not depend on a: leave it out",
                       score="true ? alibi(slope) : a" + ("" if extra == 1.0 else "[h]"),
                       inputs={"slope": ("h", slope), "a": extra})

        self.wrong(ValueError, "inputs: mask and score do not depend on n: leave it out", score="s + 0 * n + slope[h]",
                   inputs={"n": 3, "slope": ("h", slope)})

    def test_inputs_of_backward(self):
        slope, lse = np.ones(H, "f4"), zeros(B, H, NQ, dtype="f4")
        self.says(ValueError, "inputs: mask and score do not depend on a: leave it out", flashgen.attention_backward, Q, Q,
                  K, K, Q, lse, score="true ? alibi(slope) : a[h]", inputs={"slope": ("h", slope), "a": ("h", slope)})
        self.says(ValueError, "lse has shape (2, 4, 5, 1); expected (2, 4, 5)", flashgen.attention_backward, Q, Q, K, K, Q,
                  lse[..., None])
        self.says(ValueError, "dout has shape (2, 9, 2, 16); expected (2, 5, 4, 16)", flashgen.attention_backward, K, Q, K,
                  K, Q, lse)
        self.says(ValueError, "dlse is given, and normalizer retention has no lse", flashgen.attention_backward, Q, Q, K, K,
                  Q, lse, dlse=lse, normalizer="retention")
        self.says(TypeError, "lse is a NoneType, q a ndarray", flashgen.attention_backward, Q, Q, K, K, Q, None)
        self.says(TypeError, "dout is float32 and q float16", flashgen.attention_backward, Q.astype("f4"), Q, K, K, Q, lse)

    def test_layouts(self):
        packed = {"q": zeros(9, H, D), "k": TOKENS, "v": TOKENS}
        self.wrong(TypeError, "starts_q is int64; expected int32", starts_q=STARTS.astype("i8"), starts_k=STARTS,
                   **packed)
        self.wrong(ValueError, "starts_k has shape (2,); expected (3,)", starts_q=STARTS, starts_k=STARTS[:2], **packed)
        self.wrong(ValueError, "q has shape (2, 5, 4, 16); expected [tokens, h, d]", starts_q=STARTS)
        ranges = np.zeros((3, 2), "i4")
        self.wrong(ValueError, "k_ranges is not given", q_ranges=ranges, **packed)
        self.wrong(ValueError, "q_ranges has shape (2,); expected [slices, 2]", q_ranges=STARTS[:2], k_ranges=ranges, **packed)
        self.wrong(ValueError, "k_ranges has shape (2, 2); expected (3, 2)", q_ranges=ranges, k_ranges=ranges[:2], **packed)
        self.wrong(ValueError, "kinds has shape (2,); expected (3,)", q_ranges=ranges, k_ranges=ranges, kinds=ranges[:2, 0], **packed)
        self.wrong(TypeError, "q_ranges is int64; expected int32", q_ranges=ranges.astype("i8"), k_ranges=ranges, **packed)
        self.wrong(ValueError, "starts_q is given: the tokens of slices", q_ranges=ranges, k_ranges=ranges, starts_q=STARTS, **packed)
        self.wrong(ValueError, "q has shape (2, 5, 4, 16); expected [tokens, h, d]", q_ranges=ranges, k_ranges=ranges)
        self.wrong(ValueError, "pos_q is given: the tokens of slices are all of one batch, and no parts", q_ranges=ranges,
                   k_ranges=ranges, pos_q=3, **packed)
        self.wrong(ValueError, "whole_k has shape (3,); expected (2,)", whole_k=STARTS)
        self.wrong(TypeError, "pos_k is int64; expected int32", pos_k=STARTS[:2].astype("i8"))
        self.wrong(ValueError, "pos_k is -1; expected a number from 0 to 2^30 - 1", pos_k=-1)
        for wrong in (STARTS[:0], STARTS[0], STARTS[None]):
            self.wrong(ValueError, "; expected [b + 1]", starts_q=np.asarray(wrong), starts_k=STARTS, **packed)
        self.wrong(ValueError, "table has shape (2,); expected [b, pages]", table=USED, used_k=USED)
        self.wrong(ValueError, "k has shape (9, 2, 16); expected [caches, nk, hk, d]", k=TOKENS, v=TOKENS, used_k=USED)
        self.wrong(ValueError, "used_k has shape (1,); expected (2,)", used_k=USED[:1])
        self.wrong(ValueError, "used_q is for packed queries", used_q=USED)
        self.wrong(ValueError, "starts_k is for packed keys; table, first_k and rows are for a cache", starts_k=STARTS,
                   k=TOKENS, v=TOKENS, rows=USED)
        self.wrong(ValueError, "table has shape (2, 1); expected (2, 2): a row for each of the sequences, a column for each "
                   "page of 10 keys", table=zeros(B, 1, dtype="i4"), used_k=USED, longest_k=10)

    def test_numbers(self):
        self.wrong(TypeError, "scale is a ndarray; expected a number", scale=np.ones(1))
        self.wrong(TypeError, "longest_k is a float; expected a number", longest_k=1.5)
        self.wrong(TypeError, "sm_margin is a float; expected a number", sm_margin=1.5)
        for name in ("sm_margin", "longest_q", "longest_k", "descale_block"):
            self.wrong(ValueError, f"{name} is an int of 81 bits; expected a number from 0 to", **{name: 1 << 80})
            self.wrong(ValueError, f"{name} is -1; expected a number from 0 to", **{name: -1})
        self.wrong(ValueError, "scale is an int of 1329 bits", scale=10 ** 400)
        self.wrong(TypeError, "define is 'x'; expected a dict of texts", define="x")
        self.wrong(TypeError, "normalizer is a int; expected a word", normalizer=5)
        self.wrong(TypeError, "o_dtype is a list; expected a word", o_dtype=[])
        self.wrong(TypeError, "dropout is a str; expected a number", dropout="a")
        self.wrong(TypeError, "plan: family is (['simt'],); expected a word or a number", plan={"family": [["simt"]]})
        self.wrong(ValueError, "dropout is 1.5; expected a number from 0 to 1", dropout=1.5, seed=1)
        self.wrong(ValueError, "dropout of NumPy arrays needs a seed", dropout=0.5)
        self.wrong(ValueError, "seed is given, and dropout is 0", seed=1)
        self.wrong(ValueError, "seed is (1, 2, 3); expected", dropout=0.5, seed=(1, 2, 3))
        self.wrong(ValueError, "seed is (-1, 0); expected", dropout=0.5, seed=-1)
        self.wrong(NotImplementedError, "normalizer=sigmoid takes no dropout", dropout=0.5, seed=1, normalizer="sigmoid")
        self.wrong(ValueError, "plan: there is no blocks; expected family, block_q", plan={"blocks": 1})
        self.wrong(ValueError, "return_lse: normalizer none has no lse", normalizer="none", return_lse=True)

    def test_out(self):
        self.wrong(ValueError, "out has shape (2, 9, 2, 16); expected (2, 5, 4, 16)", out=K)
        frozen = Q.copy()
        frozen.flags.writeable = False
        self.wrong(ValueError, "out is an array that may not be written to", out=frozen)
        self.wrong(TypeError, "out is float32 and q float16: they have to be equal", out=Q.astype("f4"))

    def test_nobody_computes_it(self):
        self.wrong(NotImplementedError, "no plan", plan={"family": "simt", "block_q": 7})


class Launch(Case):
    """What the library's fg_launch finds."""

    def test_sentences(self):
        self.says(ValueError, "scale = inf: expected", flashgen.attention, Q, K, K, scale=float("inf"))
        self.says(ValueError, "width = 1.07374e+10", flashgen.attention, Q, K, K, mask="window(width, 0)",
                  inputs={"width": 10 * 2**30})
        self.says(ValueError, "sm_margin = 6: expected 0 to 5 on a device of 6", flashgen.attention, Q, K, K, sm_margin=6)
        self.says(ValueError, "used_k is missing", flashgen.attention, Q, K, K, first_k=USED)
        odd = np.zeros(K.size + 1, "f2")[1:].reshape(K.shape)
        self.says(ValueError, "k: its address is not a multiple of 16", flashgen.attention, Q, odd, odd, used_k=USED)


if __name__ == "__main__":
    main()
