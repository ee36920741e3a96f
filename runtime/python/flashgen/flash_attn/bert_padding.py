"""Sequences of many lengths, between [b, n, ...] with a mask and packed [tokens, ...]."""
import torch


def index_first_axis(x, indices):
    """The rows of x [n, ...] that the indices name."""
    return x.index_select(0, indices)


def unpad_input(hidden_states, attention_mask, unused_mask=None):
    """Packs the tokens of hidden_states [b, n, ...] that either mask [b, n] marks: (tokens, where they were in b n,
    int32[b + 1] where sequences start, the longest sequence, int32[b] how many attention_mask marks)."""
    marked = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = marked.sum(-1, dtype=torch.int32)
    indices = marked.flatten().nonzero().flatten()
    starts = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    return (index_first_axis(hidden_states.flatten(0, 1), indices), indices, starts, int(lengths.max()),
            attention_mask.sum(-1, dtype=torch.int32))


def pad_input(hidden_states, indices, batch, seqlen):
    """The inverse: [b, n, ...] with hidden_states [tokens, ...] where they were, and 0 elsewhere."""
    made = hidden_states.new_zeros(batch * seqlen, *hidden_states.shape[1:])
    return made.index_copy(0, indices, hidden_states).unflatten(0, (batch, seqlen))
