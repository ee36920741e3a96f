# A task of a new user, install the package and call it from PyTorch. From the README and pytorch.md. PYTHON has PyTorch, or NumPy alone.
"$PYTHON" -m venv --system-site-packages env
env/bin/python -m pip install -q --disable-pip-version-check "$SOURCE/runtime/python"
env/bin/python -m flashgen doctor
env/bin/python -c '
try:
    import torch
    q, k, v = (torch.randn(2, 50, 4, 64, dtype=torch.bfloat16) for _ in "qkv")
except ImportError:
    import numpy as np
    q, k, v = (np.random.standard_normal((2, 50, 4, 64)).astype("float16") for _ in "qkv")
import flashgen
assert "env" in flashgen.__file__, flashgen.__file__
print(flashgen.attention(q, k, v, mask="causal").shape)'
