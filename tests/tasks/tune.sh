# A task of a new user, tune for two shapes and see that the library goes by it. From tuning.md and which_kernel.md.
cat > shapes.lua <<'END'
return { { b = 1, h = 2, nq = 48 }, { b = 2, h = 2, hk = 1, nq = 1, nk = 200 } }
END
flashgen tune head_dim=32 mask=causal family=mma block_q=64 --shapes shapes.lua --device host --wisdom mine.txt
flashgen wisdom show mine.txt
flashgen report mine.txt -o mine.html
test -s mine.html
python3 -c '
import numpy as np
for name in "qkv":
    np.save(name + ".npy", np.random.default_rng(0).standard_normal((1, 48, 2, 32), dtype=np.float32))'
export FLASHGEN_WISDOM=mine.txt FLASHGEN_VERBOSE=dispatch
flashgen run mask=causal --in q=q.npy --in k=k.npy --in v=v.npy --out o=o.npy --device host 2>log.txt
grep ': taken, [0-9.]* ms' log.txt
