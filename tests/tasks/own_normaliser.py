"""A task of a new user, a normaliser of one's own, max(s, 0)^2. From own_formula.md and the list of members in templates/attention/normalizer.lua."""
import os
import pathlib
import tempfile

import torch

FOLDER = tempfile.TemporaryDirectory()
file = pathlib.Path(FOLDER.name, "attention/normalizers/square.lua")
file.parent.mkdir(parents=True)
file.write_text("""
local square = {
  about = "squared relu", masked = "NEG_INF", state = {}, inputs = {}, head_grads = {},
  score_is_weight = true, has_correction = false, ds_is_0_if_masked = true,
}
local function positive(s, unit) return "max_f32(" .. s .. (unit and " * " .. unit or "") .. ", 0.0f)" end
function square.init() return "" end
function square.step(r) return r.each("{\\nconst float positive = " .. positive(r.s, r.unit) .. ";\\n" .. r.p .. " = positive * positive;\\n}") end
function square.finish(r) return "const float " .. r.inverse .. " = 1.0f;" end
function square.merge(a, b) return "const float " .. a.correction .. " = 1.0f;\\nconst float " .. b.correction .. " = 1.0f;" end
function square.resume(r) return "const float " .. r.weight .. " = 1.0f;" end
function square.basis(s, _, unit) return positive(s, unit) end
function square.p(basis) return basis .. " * " .. basis end
function square.ds(_, dp, _, _, _, basis) return "2.0f * " .. basis .. " * " .. dp end
return square
""")
os.environ["FLASHGEN_TEMPLATES"] = FOLDER.name
from flashgen import attention  # noqa: E402

torch.manual_seed(5)
q, k, v = (torch.randn(1, 70, 4, 64, dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")
out = attention(q, k, v, mask="causal", normalizer="square")
out.float().square().sum().backward()

Q, K, V = (x.detach().double().transpose(1, 2).requires_grad_() for x in (q, k, v))
right = torch.relu(Q @ K.transpose(2, 3) / 8).tril().square() @ V
right.square().sum().backward()
for found, wanted in ((out, right), (q.grad, Q.grad), (k.grad, K.grad), (v.grad, V.grad)):
    found = found.transpose(1, 2)
    assert (found - wanted).norm() < 8e-3 * wanted.norm(), (found - wanted).norm() / wanted.norm()
