/* t_scores.c - scores whose terms meet in one kernel: each family's forward and backward against
 * the oracle. */
#include "kernel_case.h"

#define FEW    SHAPE(1, 4, 2, 70, 150, 0)
#define SQUARE SHAPE(1, 2, 2, 129, 129, 0)

static const struct {
  const char *words;
  fg_shape shape;
} scores[] = {
    /* A multiple of s that is read beside a multiple of k; tanh of a multiple that is read. */
    {"score=s*w[h]+w[h]*float(k-p) inputs.w=f32[h]grad mask=causal", FEW},
    {"score=s*w[h]+0.1*float(k) inputs.w=f32[h]", FEW},
    {"score=s*w[hk]+0.1*float(k-p) inputs.w=f32[hk] mask=causal", FEW},
    {"score=s*w[h]+alibi_slope*(k-p) inputs.w=f32[h]", FEW},
    {"score=s*w[h]+0.01*w[h]*w[h]*float(k-p) inputs.w=f32[h] mask=causal", FEW},
    {"score=tanh(s*w[h])*30.0 inputs.w=f32[h]grad", FEW},
    {"score=tanh(w[h]*s*0.1)*30.0+w[h]*float(k-p) inputs.w=f32[h] mask=causal", FEW},
    /* They fall by much from key to key: lse is that of the nearest ones. */
    {"score=s-10.0*float(q-k) mask=causal", SQUARE},
    {"score=s-30.0*float(q-k) mask=causal", SQUARE},
    {"score=1000.0*float(k-q)+s mask=causal", SQUARE},
    {"score=s*0.5-float(7*(p-k))*25.0 mask=causal", SQUARE},
    {"score=softcap(s,20.0)-100.0*float(p-k) mask=causal", SQUARE},
    {"score=s-float(300*q-300*k) mask=causal", SQUARE},
    /* Divisions and roots of a pair's own; and tests of them, of which whole numbers are ties. */
    {"score=s/(1.0+abs(s))", FEW},
    {"score=s/sqrt(1.0+s*s)", FEW},
    {"score=s+float(k)/float(q+k+1)", FEW},
    {"score=s*w[h]/(w[h]*w[h]+abs(s)+1.0) inputs.w=f32[h]grad", FEW},
    {"mask=float(k)/49.0<1.0||float(k)/49.0>=2.0", FEW},
    {"mask=float(k)/float(q+1)<1.0", FEW},
    {"mask=sqrt(float(k*k))<=float(p)", FEW},
    {"score=floor(float(k)/float(7*(q+1)))>1?s:-s", FEW},
};

TEST_TENTH(are_right, sizeof scores / sizeof *scores) {
  static const char *const families[] = {"pass=forward,backward family=simt",
                                         "pass=forward,backward family=mma",
                                         "pass=forward family=wgmma", "pass=forward family=decode"};
  for (int f = 0; f < 4; f++) {
    kernels made = kernels_first("%s head_dim=32 %s", families[f], scores[_i].words);
    for (int n = 0; n < made.n; n++)
      kernel_verify(&made.list[n],
                    &(verify_case){.shape = scores[_i].shape, .seed = 40 + (uint64_t)_i});
    kernels_free(&made);
  }
}
