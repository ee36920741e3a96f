# A task of a new user, read which kernel ran and why, then force another one. From which_kernel.md.
python3 -c '
import numpy as np
for name in "qkv":
    np.save(name + ".npy", np.random.default_rng(0).standard_normal((1, 64, 4, 64), dtype=np.float32))'
run="flashgen run mask=causal --in q=q.npy --in k=k.npy --in v=v.npy --out o=o.npy --device host"
FLASHGEN_VERBOSE=dispatch $run 2>log.txt
grep ': taken, ' log.txt
grep 'simt is for what no other family computes' log.txt
FLASHGEN_VERBOSE=dispatch FLASHGEN_PLAN='mma-q128-*' $run 2>log.txt
grep ': taken' log.txt | grep mma-q128-
name=$(sed -n 's/.* \(attn_fwd[^:]*\): taken.*/\1/p' log.txt)
flashgen emit "$name.host" | head -n 1 | grep "$name"
flashgen list -v head_dim=64 mask=causal | grep switches
