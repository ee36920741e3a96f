"""A transformer of two layers trained with flashgen.attention in bfloat16, beside PyTorch's attention from the same weights on
the same data. Both are compared with the same training in float32, whose attention is PyTorch's: as far as bfloat16 leads
PyTorch's from it in losses and weights, twice as far may ours be, and no farther.

Stochastic gradient descent, because Adam would hide a gradient that is wrong by a factor."""
import contextlib
import re

from case import Case, flashgen, main
from device import DEVICE, torch

if DEVICE == "cpu":  # the host device is slow
    WIDTH, HEADS, N, BATCH = 64, 2, 48, 8
    torch.set_num_threads(1)
else:
    WIDTH, HEADS, N, BATCH = 256, 4, 256, 8
LAYERS, TOKENS, FEW, STEPS, RATE, MOMENTUM = 2, 16, 4, 50, 0.04, 0.9
# Of the mean of a batch's losses: one of them is off by about 2^-9, half a unit of bfloat16's last place, where logits are 1.
RESOLUTION = 2.0 ** -9 / (BATCH * N) ** 0.5


class Layer(torch.nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in "qkvo")
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.before(x)
        q, k, v = (f(y).unflatten(2, (HEADS, -1)) for f in (self.q, self.k, self.v))
        x = x + self.o(self.attend(q, k, v).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.between(x))))


class Model(torch.nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.token = torch.nn.Embedding(TOKENS, WIDTH)
        angles = torch.arange(N)[:, None] * 100.0 ** -torch.linspace(0, 1, WIDTH // 2)
        self.register_buffer("places", torch.cat((angles.sin(), angles.cos()), 1))
        self.layers = torch.nn.ModuleList([Layer(attend) for _ in range(LAYERS)])
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        x = self.token(tokens) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).float()


def ours(q, k, v):
    return flashgen.attention(q, k, v, mask="causal")


def theirs(q, k, v):
    made = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True)
    return made.transpose(1, 2)


def batches():
    """Pairs of tokens and what follows each. A row of tokens has FEW of all of them, which the earlier ones tell."""
    chance = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        few = torch.rand((BATCH, TOKENS), generator=chance).argsort(1)[:, :FEW]
        rows = few.gather(1, torch.randint(FEW, (BATCH, N + 1), generator=chance)).to(DEVICE)
        yield rows[:, :-1], rows[:, 1:]


def trained(attend, is_exact=False):
    """(loss of each step, name -> weight afterwards)."""
    torch.manual_seed(0)
    model = Model(attend).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    losses = []
    for tokens, follows in batches():
        with contextlib.nullcontext() if is_exact else torch.autocast(DEVICE.partition(":")[0], torch.bfloat16):
            found = model(tokens)
        loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), follows.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64), {name: x.detach().double() for name, x in model.named_parameters()}


def rms(x):
    return x.square().mean().sqrt().item()


class Training(Case):
    def test_training(self):
        exact, right = trained(theirs, is_exact=True)
        their_losses, their_weights = trained(theirs)
        losses, weights = trained(ours)
        self.assertLess(exact[-5:].mean(), 0.8 * exact[0], "nothing is learnt, so nothing is compared")
        self.assertLess(rms(losses - exact), 2 * rms(their_losses - exact) + RESOLUTION)
        for name in right:
            if re.fullmatch(r"layers.\d.[qkvo].weight", name):
                self.assertLess(rms(weights[name] - right[name]), 2 * rms(their_weights[name] - right[name]), name)


if __name__ == "__main__":
    main()
