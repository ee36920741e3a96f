/* t_scores.c - scores whose terms meet in one kernel: each family's forward and backward against
 * the oracle. */
#include "kernel_case.h"

/* A multiple of s that is read beside a multiple of k; tanh of a multiple that is read. */
static const char *const score[] = {
    "score=s*w[h]+w[h]*float(k-p) inputs.w=f32[h]grad",
    "score=s*w[h]+0.1*float(k) inputs.w=f32[h]",
    "score=s*w[hk]+0.1*float(k-p) inputs.w=f32[hk]",
    "score=s*w[h]+alibi_slope*(k-p) inputs.w=f32[h]",
    "score=s*w[h]+0.01*w[h]*w[h]*float(k-p) inputs.w=f32[h]",
    "score=tanh(s*w[h])*30.0 inputs.w=f32[h]grad",
    "score=tanh(w[h]*s*0.1)*30.0+w[h]*float(k-p) inputs.w=f32[h]",
};

static const char *const family[] = {"simt", "mma", "wgmma", "decode"};
enum { FAMILIES = sizeof family / sizeof *family };

/* What passes a family has. */
static const char *passes(int of) { return of < 2 ? "forward,backward" : "forward"; }

TEST_TENTH(read_factors, sizeof score / sizeof *score) {
  for (int f = 0; f < FAMILIES; f++) {
    kernels made = kernels_first("pass=%s %s head_dim=32 mask=%s family=%s", passes(f), score[_i],
                                 _i % 2 ? "full" : "causal", family[f]);
    for (int n = 0; n < made.n; n++)
      kernel_verify(&made.list[n],
                    &(verify_case){.shape = {.b = 1, .h = 4, .hk = 2, .nq = 70, .nk = 150},
                                   .seed = 40 + (uint64_t)_i});
    kernels_free(&made);
  }
}

/* Scores that fall by much from key to key: lse is that of the nearest ones. */
static const char *const steep[] = {
    "score=s-10.0*float(q-k)",
    "score=s-30.0*float(q-k)",
    "score=1000.0*float(k-q)+s",
    "score=s*0.5-float(7*(p-k))*25.0",
    "score=softcap(s,20.0)-100.0*float(p-k)",
    "score=s-float(300*q-300*k)",
};

TEST_TENTH(steep_slopes, sizeof steep / sizeof *steep) {
  for (int f = 0; f < FAMILIES; f++) {
    kernels made = kernels_first("pass=%s %s head_dim=32 mask=causal family=%s", passes(f),
                                 steep[_i], family[f]);
    for (int n = 0; n < made.n; n++)
      kernel_verify(&made.list[n],
                    &(verify_case){.shape = {.b = 1, .h = 2, .hk = 2, .nq = 129, .nk = 129},
                                   .seed = 60 + (uint64_t)_i});
    kernels_free(&made);
  }
}

/* Divisions and roots of a pair's own; and tests of them, of which whole numbers are ties. */
static const char *const quotient[] = {
    "score=s/(1.0+abs(s))",
    "score=s/sqrt(1.0+s*s)",
    "score=s+float(k)/float(q+k+1)",
    "score=s*w[h]/(w[h]*w[h]+abs(s)+1.0) inputs.w=f32[h]grad",
    "mask=float(k)/49.0<1.0||float(k)/49.0>=2.0",
    "mask=float(k)/float(q+1)<1.0",
    "mask=sqrt(float(k*k))<=float(p)",
    "score=floor(float(k)/float(7*(q+1)))>1?s:-s",
};

TEST_TENTH(quotients, sizeof quotient / sizeof *quotient) {
  for (int f = 0; f < FAMILIES; f++) {
    kernels made =
        kernels_first("pass=%s %s head_dim=32 family=%s", passes(f), quotient[_i], family[f]);
    for (int n = 0; n < made.n; n++)
      kernel_verify(&made.list[n],
                    &(verify_case){.shape = {.b = 1, .h = 2, .hk = 2, .nq = 70, .nk = 150},
                                   .seed = 80 + (uint64_t)_i});
    kernels_free(&made);
  }
}
