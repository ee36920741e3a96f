/* flashgen.h - attention kernels made for a spec, chosen for a shape, launched on a stream.
 *
 *   fg_open(&config, &ctx);                        templates, zoos, cache, one device
 *   fg_define(ctx, &spec, &op);                    cold: checks and copies the spec
 *   fg_select(op, &shape, stream, &kernel);        hot; compiles and loads on a miss
 *   bytes = fg_workspace_bytes(kernel, &shape);    scratch, the caller's
 *   fg_launch(kernel, &shape, &args, workspace, stream);
 *
 * Plain C11 and C++, no CUDA header. Every struct that a caller fills starts with `size`; FG_INIT
 * sets it and zeroes the rest, and zero always means "the default". A call that fails returns who
 * must act and leaves its out-parameter alone; fg_error() has the sentence. NULL where something
 * must be given is FG_EARGUMENT. All functions may be called from many threads at once, but for
 * fg_close. A context must not be used after a fork in the child. */
#ifndef FLASHGEN_H
#define FLASHGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FG_VERSION "0.1.0"

/* Who must act when a call fails; fg_error() has the sentence. */
typedef enum fg_status {
  FG_OK = 0,
  FG_EARGUMENT,    /* the caller: a bad argument, tensor or shape */
  FG_ESPEC,        /* the author of the spec */
  FG_ETEMPLATE,    /* the author of a template or family; also a fault the host device found */
  FG_ECOMPILER,    /* the kernel compiler refused the text */
  FG_ECUDA,        /* the CUDA driver */
  FG_EIO,          /* a file or directory */
  FG_EMEMORY,      /* memory ran out */
  FG_ECAPTURE,     /* the stream is capturing and something cold was asked for */
  FG_EENVIRONMENT, /* the machine lacks something: a compiler, a GPU */
  FG_EBUG          /* flashgen itself */
} fg_status;

/* The last failure in this thread, one sentence or more, never NULL; valid until the next failure.
 */
const char *fg_error(void);

/* An initialiser: fg_spec spec = FG_INIT(fg_spec); all zero but for its size. In C members may
 * follow: fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = 8, .hk = 8, .nq = 100, .nk = 100);
 *
 * What stays and what may change. A later version with the same soname only appends members to a
 * struct, each at a multiple of 8 bytes, and only adds functions and error codes; a program that
 * was built with an older header keeps working, and what its structs lack is 0. A size of 0, one
 * that cuts a member in two and one beyond this library's are refused. fg_tensor alone has no size
 * and never changes. Before 1.0 a new minor version may change anything, and has a soname of its
 * own. */
#ifdef __cplusplus
#define FG_INIT(type)                                                                              \
  [] {                                                                                             \
    type made = type();                                                                            \
    made.size = sizeof made;                                                                       \
    return made;                                                                                   \
  }()
#else
#define FG_INIT(...) FG_INIT_MEMBERS(__VA_ARGS__, )
#define FG_INIT_MEMBERS(type, ...)                                                                 \
  { .size = sizeof(type), __VA_ARGS__ }
#endif

/* What a kernel computes, and which plans may compute it: one text value a field, NULL = default.
 * The texts are those of spec files and command lines; the table of fields is gen/spec/field.c. */
typedef struct fg_spec {
  size_t size;
  const char *kernel, *pass, *dtype, *head_dim, *mask, *bias, *bias_dims, *bias_dtype, *grad_dtype;
  const char *normalizer, *deterministic;
  /* restrictions on plans: a list each, "64,128"; parts: the former name of warps_per_key beside
   * family mma, of key_parts beside wgmma */
  const char *family, *block_q, *block_kv, *stages, *warps, *parts;
  /* expressions and what they use: "slope=f32[h] grad, width=int"; "strided(n)=(q - k) % n == 0" */
  const char *score, *inputs, *define;
  const char *width;                     /* of kernels of rows: columns of a row, or in/out */
  const char *warps_per_key, *key_parts; /* more restrictions on plans */
  const char *q_layout, *kv_layout;      /* how sequences lie in memory: fg_args */
  const char *parts_dtype;               /* of kernel=combine: f32, or spec = dtype */
  /* of kernel=append */
  const char *rotary, *rotary_dim, *rotary_dtype;
  const char *batch_invariant, *sink, *dropout, *max_logit;
  const char *residual, *norm; /* of kernel=layernorm; linear has a residual too */
  const char *target;          /* of kernel=logsoftmax */
  const char *epilogue;        /* of kernel=linear: none, relu, gelu, ...: fg_args */
  const char *slices;          /* true: the mask is a list of the launch: fg_args */
  const char *shard;           /* true: the launch has a part of each sequence: fg_args */
  /* element types of o, and of dq, dk and dv: f32, or spec = dtype; o of e4m3: bf16, f16, f32 */
  const char *o_dtype, *dqkv_dtype;
  const char *kv_dtype;      /* of k and v, of append the cache: e4m3, or spec = dtype */
  const char *descale_block; /* of e4m3: tokens that share a descale, 0 = all: fg_args */
  const char *latent;        /* true: v is the first columns of k: fg_args */
} fg_spec;

/* The run-time extents: batch, query heads, key/value heads (h is a multiple of hk), query and key
 * lengths (each < 2^30). align = bytes that every pointer and row stride is a multiple of; 0 = 16.
 * kernel=logsoftmax, layernorm, linear have rows alone, kernel=combine parts (1 to 256), b, h and
 * nq; kernel=append has nq = new rows of each sequence, nk = the most rows of one, and positions =
 * rows of its tables; extents that a kernel does not have are 0.
 *
 * Packed sequences: tokens_q, tokens_k = tokens of the tensors; nq, nk = the longest sequence, an
 * upper bound that only the choice of a kernel depends on, 0: not known. kv_layout=cached: pages =
 * caches there are, 0: b; nk = rows of each. kv_layout=paged: pages = pages there are, page = keys
 * of each; nk = the most keys of a sequence, for which the table has cdiv(nk, page) columns.
 * slices = those of a launch of slices=true, which may be 0. */
typedef struct fg_shape {
  size_t size;
  int64_t b, h, hk, nq, nk, align;
  int64_t rows;
  int64_t tokens_q, tokens_k, pages, page;
  int64_t parts, positions;
  int64_t slices;
} fg_shape;

/* A tensor: its first element and its strides in elements, in the order batch, head, row, column
 * (b h n d; of bias and dbias b h q k), in whatever order they lie in memory: a contiguous
 * [b, n, h, d] tensor has the strides {n h d, d, h d, 1}. The last stride is 1; an axis of extent 1
 * is broadcast whatever its stride. Parts come before the others: o_parts has strides of part,
 * batch, head and row, and that of its columns, which is 1, is left out; lse_parts has the same
 * four, the last one any. Five words, for good: it has no size. */
typedef struct fg_tensor {
  void *data;
  int64_t stride[4];
} fg_tensor;

/* A declared input: a tensor, its strides in the order of its own axes, the last one 1, and where
 * the spec wants it its gradient, like it; or a number. One whose size is 0 counts as not given. */
typedef struct fg_input_value {
  size_t size;
  fg_tensor value, grad;
  double number; /* an int is a whole one, at most 2^30 in size; a float fits a float32 */
} fg_input_value;

/* Numbers of a launch that count only where fg_args.given names them, because 0 is a value too. One
 * that is set and not named is refused. */
enum { FG_GIVEN_SCALE = 1, FG_GIVEN_SIGMOID_BIAS = 2, FG_GIVEN_KEEP = 4, FG_GIVEN_EPS = 8 };

/* Everything a launch may take; data = NULL where not used. In the spec's dtype unless said; axes
 * in the order in which .npy files have them (strides say how they really lie):
 *
 *   q, dq         [b, nq, h, d]
 *   k, dk         [b, nk, hk, d]
 *   v, dv         [b, nk, hk, dv]; with latent=true v is the first dv columns of k, and is NULL or k
 *   o, dout       [b, nq, h, dv]
 *   bias, dbias   [b|1, h|1, nq|1, nk|1], in bias_dtype and grad_dtype. The spec's bias_dims say
 *                 which extents are not 1, by default none is: dbias has b h nq nk elements then,
 *                 and the library cannot see that a buffer for [1, 1, nq, nk] is too small
 *   lse, dlse     [b, h, nq], float32, contiguous, natural log; forward's lse may be NULL
 *   r             [b, h, nq] as lse, of normalizer=retention: the sum of |S| of a row; forward's
 *                 may be NULL. It has no gradient
 *   u             [b, nq, h, dv], float32, of normalizer=logsoftmax: the sum of the values that a row
 *                 sees; forward's may be NULL. It has no gradient
 *   max_logit     [b, h], float32, contiguous, of max_logit=true: the largest scale * q . k of the
 *                 pairs that the mask shows, before score and bias; -inf where there is none
 *   sink, dsink   [h], float32, contiguous: a logit of each head, beside its scores and not
 *                 scaled, that takes weight and adds nothing to o. It is in lse, which of a row
 *                 without keys is the sink; -inf is none (mathematics.md section 2). Parts have
 *                 none:
 *                 combine adds it once
 *   q_descale     [b, hk], float32, in any strides, of dtype=e4m3: what q is multiplied with before all
 *                 else, by sequence and key/value head; NULL: 1. With descale_block=n [b, hk, nq / n
 *                 rounded up], nq that of the shape: token i of a sequence, in whatever layout, has
 *                 that of block i / n, and the third stride is that of blocks
 *   k_descale, v_descale   the same of k and v, by nk, also with kv_dtype=e4m3. Where q is e4m3, the
 *                 weights are rounded to it too (mathematics.md section 7). Launches of kernels
 *                 that have
 *                 none refuse them
 *
 * Rows (kernel=logsoftmax, layernorm, linear; mathematics.md section 5). Strides of [rows, width]
 * are the
 * third, of a row, and the fourth, 1, and the first two are not used: the tensor of a [b, n, h, d]
 * is one of [b n, h d], too, where its heads lie side by side. What has [rows] or [width] is
 * contiguous.
 *
 *   x, y, dy, dx  [rows, width], of kernel=logsoftmax: y = x - LSE(x) of each row; backward takes y
 *                 and dy. Where x is -inf y is -inf and dx is 0
 *   target, loss, lse, dloss   [rows], int32 and float32, with target=true, where there is no y:
 *                 loss = w (LSE - x of the target's column), backward takes x, target, lse and
 *                 dloss. A target that is no column (-100, say): loss is 0, and so is the row's dx.
 *                 forward's lse may be NULL
 *   weight        [width], float32, beside target; NULL: 1. w is that of the row's target
 *   x, residual, bias   of kernel=layernorm: z = x + bias + residual, as far as the spec has them;
 *                 bias [width]
 *   gamma, beta, out    out = (z - mean) rstd gamma + beta, [width] and [rows, width]; beta may be
 *                 NULL. With norm=rms out = z rstd gamma
 *   mean, rstd    [rows], float32, what forward leaves for backward: rstd = 1 / sqrt(variance +
 *                 eps); norm=rms has no mean. forward's may be NULL
 *   z             [rows, width]: an output of forward that may be NULL, where the spec has a bias or
 *                 a residual; backward takes z, or x and what is added where z is NULL
 *   dout, dz, dx  gradient of out; of z where z goes on, NULL: none; of x, which is residual's too.
 *                 dz is added
 *   dgamma, dbeta, dbias   [width]; dbeta may be NULL, dbias is there with bias=grad. Equal launches
 *                 give equal bits
 *   x, w, bias, y of kernel=linear, whose width is in/out: y = act(x w^T + bias) + residual, with x
 *                 [rows, in], w [out, in] as PyTorch has it, bias [out], y, residual [rows, out].
 *                 epilogue names the activation act: none, relu, gelu (by tanh), gelu_erf, silu.
 *                 reglu, geglu, swiglu are gated: w and bias have 2 out rows, the gate's g first,
 *                 then those of v, and y = act(g) v + residual
 *   kept          [rows, columns], the tensor keep of an epilogue: act's derivatives, which forward
 *                 leaves for backward; forward's may be NULL. Of relu int32 [rows, cdiv(out, 32)],
 *                 a bit for each column, the lowest first; of others [rows, out] in the dtype, of
 *                 gated ones, reglu too, [rows, 2 out]: v act'(g), then act(g). Without an epilogue
 *                 there is none
 *   dy, dx, dw, dbias   gradients; backward takes x, w, dy and keep. dx, dw are like x, w; where one is
 *                 NULL its product is not computed. dbias is there with bias=grad, which forward
 *                 reads as true. Backward has no residual: its gradient is dy. Equal launches give
 *                 equal bits
 *   dx_more       [rows, in], NULL: none: the gradient that reaches x from elsewhere, where x goes
 *                 on besides as a residual. It is added to dx
 *   out, z, mean, rstd   of epilogue=layernorm, and rmsnorm without a mean, in place of y and kept:
 *                 z = x w^T + bias + residual [rows, out], and out is the norm of its rows by gamma
 *                 and beta [out], as above. Backward takes x, w, z, mean, rstd, gamma, dout and dz,
 *                 NULL: none, and gives dx, dw, dbias, dgamma, dbeta and
 *   dresidual     [rows, out], the gradient of z, which is that of residual
 *
 * Other layouts of sequences (q_layout, kv_layout). Lengths and places are int32 on the device; no
 * call reads them on the host, and none is compiled in. A sequence's own lengths are nq, nk and p
 * of its mask and score.
 *
 *   packed   one sequence behind the other: q, o and their like [tokens_q, h, d], k and v
 *            [tokens_k, hk, d], whose first stride is not used; lse and dlse [h, tokens_q].
 *            Sequence i has the tokens from starts_q[i] to starts_q[i + 1] (starts_k for keys), of
 *            which used_q[i] (used_k[i]) count, NULL: all. Starts do not fall. Rows that no
 *            sequence covers are written as 0, lse as -inf; what inputs hold there does not count.
 *            Inputs with an extent q or k run over all tokens: x[q] is token starts_q[b] + q
 *   cached   k and v [pages, nk, hk, d]: sequence i has the rows first_k[i] (NULL: 0) to used_k[i]
 *            of cache rows[i] (NULL: i); key 0 is the first one of these. The first stride is a
 *            multiple of the third, or the spec says family=mma,decode,simt, which do without
 *   paged    k and v [pages, page, hk, d], their first stride a page's: key i of a sequence lies in
 *            page table[b, (first_k[b] + i) / page]. Entries beyond used_k are not read. Strides as
 *            of cached ones; the table's rows are stride[0] entries apart, its columns stride[3]
 *
 *   starts_q, starts_k  [b + 1]
 *   used_q, used_k, first_k, rows  [b]; used counts the rows of first_k too
 *   table    [b, cdiv(nk, page)]
 *
 * Slices (slices=true): the mask is a list of slices of dense tokens, of one batch: b = 1. Slice i
 * has the rows from q_ranges[i][0] to q_ranges[i][1], half open, and the keys of k_ranges[i], cut
 * to the tokens that there are; a range that is reversed has none. The lists are int32 on the
 * device; no call reads them on the host.
 *
 *   q_ranges, k_ranges  [slices, 2], contiguous
 *   kinds    [slices], NULL: all 0. Of the slice's own row i of nq and key j of nk: 0 shows all
 *            pairs, 1 (causal) those with j <= i + nk - nq, 2 (inverse) j >= i, 3 both
 *            (mathematics.md
 *            section 1)
 *
 * A pair is of the first slice of the list that shows it, and counts once: q, k, nq, nk and p of
 * mask and score are that slice's, and a pair that `mask` hides there is hidden. A row of which no
 * slice shows a key has o = 0, lse = -inf, or the sink. Inputs with an extent q or k, the bias too,
 * run over all tokens: x[q] is token q_ranges[i][0] + q. Dropout goes by tokens.
 *
 * Shards (shard=true): the launch has a part of each sequence, its rows from pos_q on and its keys
 * from pos_k on, as a rank of context parallelism has them; the whole sequence has whole_q rows and
 * whole_k keys. Any layout; not slices. All four are int32 on the device, no call reads them on the
 * host, and numbers and sums of a position and a length are from 0 to 2^30 - 1.
 *
 *   pos_q, pos_k      [b], NULL: 0
 *   whole_q, whole_k  [b], NULL: as many as the sequence has in the launch
 *
 * Mask, score, their q, k, nq, nk and p, and dropout are those of the whole sequence, so that parts
 * of any cut show and drop what one launch does (mathematics.md section 1). They need not agree: a
 * part may
 * pass the whole, and p = q + whole_k - whole_q all the same. The bias, and inputs with an extent q
 * or k, have the launch's own rows and keys, as its q and k do: x[q] is that of row q - pos_q. Such
 * an axis is indexed by q or k alone, and other extents are no expressions in nq or nk. A row that
 * sees no key of the part has o = 0, lse = -inf. Parts of the keys are joined by kernel=combine,
 * which adds the sink too: parts have none. A backward takes the o and lse of the whole, and
 * gradients are the sums of those of the parts.
 *
 * Parts (kernel=combine): o and lse of attention over some of the keys each, which no other part
 * has, finished: o is divided by its own sum, no sink is in it. Combined they are o over all keys,
 * and lse, which may be NULL (mathematics.md section 2). Sums go over the parts in their order, so
 * that
 * equal launches give equal bits. A part whose lse is -inf has no keys, and its o does not count; a
 * row whose parts have none gets o = 0, lse = -inf.
 *
 *   o_parts       [parts, b, nq, h, dv], float32, as attention with o_dtype=f32 leaves its o, or the
 *                 dtype with parts_dtype=spec
 *   lse_parts     [parts, b, h, nq], float32, natural log; in any strides, too. Of retention
 *                 r_parts, whose sum is r; of none neither, and o is the sum: with
 *                 parts_dtype=spec of any tensors of the dtype that are [b, nq, h, dv] in some way
 *   u_parts       [parts, b, nq, h, dv], float32, of logsoftmax beside lse_parts: their sum is u
 *
 * Appending (kernel=append): new rows of keys and values go into a cache, which attention then
 * reads. k and v are the cache, as above for kv_layout cached or paged; slots that get no row stay
 * as they are, bit for bit. New row i of sequence b goes to slot used_k[b] + i, where used_k holds
 * the lengths before; the caller adds to them. A slot that is below 0 or not below nk, a cache of
 * `rows` or a page of the table that there is not: the row is not written. No two rows may have one
 * slot.
 *
 *   k_new, v_new  [b, nq, hk, d] and [b, nq, hk, dv]; with q_layout=packed [tokens_q, hk, d], where
 *                 starts_q and used_q tell sequences apart as those of queries. A launch of
 *                 attention on the same new rows takes the same nq, starts_q and used_q, and used_k
 *                 with the new rows in it
 *   q, q_out      where the spec has a rotary: [b, nq, h, d], packed [tokens_q, h, d]; one may be
 *                 NULL. Queries are turned as new keys are; those without a position are 0
 *   k_descale, v_descale   [b, hk], float32, in any strides, of kv_dtype=e4m3, whose k and v are
 *                 bytes: new rows are divided by that of their sequence and head, keys behind their
 *                 rotation, and rounded to nearest even; what is above 448 becomes 448, and a NaN
 *                 stays one. NULL: 1. Attention multiplies by the same ones
 *   rotary_cos, rotary_sin   [positions, rotary_dim / 2], in the dtype, or float32 with
 *                 rotary_dtype=f32: of each position's angles. The pair (x, y) of columns 2i and
 *                 2i + 1 (interleaved) or i and i + rotary_dim / 2 (halves) becomes
 *                 (x cos - y sin, x sin + y cos); columns from rotary_dim on pass. Rounded once
 *   row_positions int32 [b, nq], packed [tokens_q]; NULL: a row's position is its slot. A key whose
 *                 position the tables do not have is not written
 *
 *   scale         of q k; not given: 1/sqrt(d). Finite, at most 2^64 in size
 *   sigmoid_bias  with normalizer=sigmoid: added to all scores; not given: -log nk, of each
 *                 sequence's own keys, with shard=true of the whole one's. Finite
 *   eps           of a layer or RMS norm: added to the variance, or the mean square; not given: 1e-5.
 *                 0 or more
 *   keep          with dropout=true, which needs it: the probability of a weight to be kept, 0 to 1,
 *                 rounded to a multiple of 2^-16. What is kept is divided by it; LSE is that of all
 *   seed          with dropout=true: four int32 on the device, which replayed graphs read anew: seed
 *                 and offset, 64 bits each, low words first. Equal ones drop the same weights, in
 *                 forward and backward, whatever the plan (mathematics.md section 3: Philox
 *                 4x32-10)
 *   inputs        n_inputs of them: those that the spec declares, in the order of their names; what
 *                 the spec's mask and score do not use has no place (fg_op_inputs)
 *   sm_margin     multiprocessors that a persistent kernel leaves to other work: 0 or more, fewer
 *                 than the device has (the host device has 6). One cluster is launched at least.
 *                 Kernels that launch a block for each tile of work ignore it. Beside a plan with
 *                 key_parts it changes how keys are shared out, and so the last bits of o
 *
 * Outputs may not overlap each other or an input; columns of one buffer, as q, k and v of one
 * product, do not. Values of k and v behind a mask must be finite: a
 * weight of 0 times NaN is NaN. */
typedef struct fg_args {
  size_t size;
  fg_tensor q, k, v, o, dout, dq, dk, dv, bias, dbias, lse, dlse;
  uint32_t given; /* FG_GIVEN_... */
  float scale;
  const fg_input_value *inputs;
  int64_t n_inputs;
  fg_tensor x, y, dy, dx;
  int64_t sm_margin;
  fg_tensor starts_q, starts_k, used_q, used_k, first_k, rows, table;
  fg_tensor o_parts, lse_parts;
  fg_tensor k_new, v_new, q_out, rotary_cos, rotary_sin, row_positions;
  fg_tensor sink, dsink;
  fg_tensor r, r_parts;
  float sigmoid_bias;
  fg_tensor u, u_parts;
  float keep;
  fg_tensor seed;
  fg_tensor max_logit;
  fg_tensor residual, gamma, beta, out, mean, rstd, z, dz, dgamma, dbeta;
  fg_tensor target, weight, loss, dloss;
  float eps;
  fg_tensor w, dw, kept; /* kept: the tensor keep */
  fg_tensor dresidual, dx_more;
  fg_tensor q_ranges, k_ranges, kinds;
  fg_tensor pos_q, pos_k, whole_q, whole_k;
  fg_tensor q_descale, k_descale, v_descale;
} fg_args;

/* A device with everything that is needed to make, keep and launch kernels for it. */
typedef struct fg_context fg_context;
/* A spec, checked: what is computed. Belongs to its context. */
typedef struct fg_op fg_op;
/* A loaded variant, ready to launch. Belongs to its context. */
typedef struct fg_kernel fg_kernel;

/* A CUDA stream (CUstream or cudaStream_t; NULL = the default one); the host device has none. */
typedef void *fg_stream;

/* Kernels that are made already: a directory that fg_build made, or one that is part of the
 * program, which `flashgen build --embed NAME` declares in NAME.h and which is used where it lies.
 */
typedef struct fg_zoo {
  size_t size;
  const char *directory;             /* NULL: it is in memory */
  const char *name;                  /* there: what messages call it; */
  const void *manifest, *code, *end; /* the manifest ends where the code begins */
} fg_zoo;

typedef struct fg_config {
  size_t size;
  /* "cuda:N" or "host"; NULL: FLASHGEN_DEVICE, else cuda:0, or where that cannot be used host, with
   * a warning that says why. "sm_90a": none, kernels are compiled for it into the cache and cannot
   * be launched. */
  const char *device;
  /* Directory whose files replace the built-in templates of the same names; NULL:
   * FLASHGEN_TEMPLATES, else the built-in ones. */
  const char *templates;
  const char *cache; /* directory; NULL: FLASHGEN_CACHE, else as environment.md says */
  const char *plan;      /* globs over plan names, "simt-q16-*,simt-*"; NULL: FLASHGEN_PLAN */
  int no_fallback; /* 1: FG_ESPEC where simt, which nobody named, is all that computes a spec */
  uint64_t seed;   /* host device: orders blocks, warps and lanes */
  void (*warn)(void *warn_context, const char *sentence); /* NULL: a line on stderr */
  void *warn_context;
  /* 1: what no zoo or cache has is compiled. -1: zoos alone, what they lack is an error, whatever
   * the cache has. 0: FLASHGEN_JIT, which is 1; its 0: what no zoo or cache has is an error. */
  int jit;
  int n_zoos;
  const fg_zoo *const *zoos; /* searched in order before the cache */
  /* Files that `flashgen tune` wrote, by which plans are chosen, the first counting most; behind
   * them counts what comes with flashgen. 0: FLASHGEN_WISDOM; -1: none at all. */
  int n_wisdom;
  const char *const *wisdom;
} fg_config;

/* FG_EENVIRONMENT: the device cannot be used. FG_EIO: a zoo or a file of wisdom is not there, or a
 * zoo is damaged. FG_EARGUMENT:
 * a variable of the environment is not what it should be. config = NULL: all defaults.
 *
 * With zoos, neither compiler nor libflashgen-gen.so is looked for before a kernel is asked for
 * that they do not have. For a spec of which they have kernels these are all there is to choose
 * from. */
fg_status fg_open(const fg_config *config, fg_context **context);
/* Frees the context with its ops and kernels; nothing of it may be in use. NULL is legal. */
void fg_close(fg_context *context);

/* Checks and copies the spec; the only call that reads its strings. FG_ESPEC with all mistakes, and
 * for a spec that is more than one kernel (a list in a field). Equal specs give equal ops. */
fg_status fg_define(fg_context *context, const fg_spec *spec, fg_op **op);
/* Takes one fg_define back. With the last one of an op it is freed with its kernels: none of them
 * may be running or in a graph. What is never taken back goes with the context; the texts of its
 * masks and scores stay with the process. NULL is legal. */
void fg_release(fg_op *op);

/* What the op's mask and score read, in the order of fg_args.inputs, as a spec declares it:
 * "cap=float, slope=f32[h] grad"; "": nothing. What was declared and does not change a result, as x
 * in 0 * x, is not there. The text lives as long as the op. */
const char *fg_op_inputs(const fg_op *op);

/* The extents of an input at a shape, by its place in fg_args.inputs: of "f32[h, nq + nk - 1]" those
 * of its 2 axes, and behind them -1; of a number -1 alone. Of packed sequences the axes q and k are
 * all tokens. FG_EARGUMENT: there is no such input, or an extent is negative or divides by 0. */
fg_status fg_input_extents(const fg_op *op, int64_t input, const fg_shape *shape,
                           int64_t extents[4]);

/* The best kernel for the shape. Shapes of one class (lengths in quarter octaves, batch times heads
 * in powers of two, align) share one: hot, it takes no lock and allocates nothing. The first time
 * it compiles, unless a zoo or the cache has the kernel, and loads. FG_ECAPTURE when that would
 * happen while the stream is capturing: the capture stays valid. Where the mask hides nothing of
 * the shape, as causal does for one row, the kernel may be one without it, which fg_launch refuses
 * for shapes where it does. FG_ESPEC: no plan fits. FG_EENVIRONMENT: it would have to be compiled,
 * and there is no compiler, or it may not be (jit). FG_EARGUMENT: a plan that is forced names a
 * family that cannot compute the spec. */
fg_status fg_select(fg_op *op, const fg_shape *shape, fg_stream stream, fg_kernel **kernel);

/* Bytes of scratch that a launch needs on the kernel's device; 0 for a shape that is refused. It
 * need not be zeroed or kept. */
size_t fg_workspace_bytes(const fg_kernel *kernel, const fg_shape *shape);

/* Launches; no allocation, lock, compile or synchronisation, and legal under stream capture.
 * Launches that run at the same time need a workspace each. FG_EARGUMENT names the tensor or
 * extent. The host device has run the kernel on return; FG_ETEMPLATE: the kernel broke a rule. */
fg_status fg_launch(fg_kernel *kernel, const fg_shape *shape, const fg_args *args, void *workspace,
                    fg_stream stream);

/* What a kernel is. The strings live as long as it does. */
typedef struct fg_info {
  size_t size;
  const char *name;    /* of the variant */
  const char *figures; /* of each entry point, a line each: registers, spills, stack */
  int from_cache;      /* it was not compiled by this context, but found in a zoo or the cache */
} fg_info;
fg_status fg_kernel_info(const fg_kernel *kernel, fg_info *info);

/* The text of a spec's kernel, by the first plan that the spec's restrictions allow; arch = NULL:
 * the context's device. *text is the caller's, to be freed with free(). */
fg_status fg_emit(fg_context *context, const fg_spec *spec, const char *arch, char **text);

/* A zoo to be made. Specs are those of the program: files that end in ".lua", and words,
 * "head_dim=64,128", each of which replaces that field in every table of the files. */
typedef struct fg_order {
  size_t size;
  const char *directory; /* made if it is not there */
  const char *const *specs;
  int n_specs;
  const char *arch; /* "sm_80", "sm_80,sm_90a"; NULL: that of the context's device */
  int plans;        /* of each spec so many, as its family lists them; 0 = 1, -1 = all */
  /* After each variant, in order, `done` of `total`, in the caller's thread; failure = NULL: it is
   * in the zoo. Nonzero: no more. */
  int (*progress)(void *progress_context, const char *variant, const char *failure, int done,
                  int total);
  void *progress_context;
  int jobs;          /* threads that compile; 0: one a core, at most 8 */
  const char *embed; /* NULL, or NAME: NAME.c and NAME.h go into the directory too */
} fg_order;

typedef struct fg_built {
  size_t size;
  int variants; /* what the specs give; more than the sum of the next three if it ended early */
  int made;     /* compiled by this call */
  int kept;     /* there already */
  int failed;   /* not in the zoo */
  int removed;  /* code files that are in the zoo no more */
  int left_out; /* specs of which only simt has a plan, and was not named; for each arch */
} fg_built;

/* Makes the zoo be what the order says, as `flashgen build` does: what is there already is kept,
 * and what an earlier call left undone goes on. With one plan of each spec, one that the compiler
 * refuses gives way to the next, with a warning. Variants that fail are left out of it, the rest is
 * finished, and the first one's failure returned; *built is filled in then too. The simt family
 * joins only where a spec names it. */
fg_status fg_build(fg_context *context, const fg_order *order, fg_built *built);

/* What a context has done so far: cache look-ups that were answered, choices made anew, kernels
 * compiled, modules loaded, kernels taken from a zoo. */
typedef struct fg_counts {
  size_t size;
  uint64_t cache_hits, choices, compiles, loads, zoo_hits;
} fg_counts;
void fg_context_counts(const fg_context *context, fg_counts *counts);

/* "0.1.0" */
const char *fg_version(void);

#ifdef __cplusplus
}
#endif
#endif
