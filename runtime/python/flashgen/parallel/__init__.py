"""What context_parallel.py consists of, for tensors of PyTorch on torch.distributed.

    order      which chunks of a sequence a rank has, and tensors cut and joined by it
    bands      which keys a mask can show a row, known without looking at pairs
    steps      which launches a rank makes over the keys of another one, and how far keys travel
    slices     a mask that is a list, cut to a rank's rows and another one's keys
    problem    one call: its group, its options, and the arguments of each launch
    partials   results over some of the keys each, made one
    messages   what ranks send each other: agreement, tensors, and what is said when an answer does not come
    ring       keys travel, or are gathered: forward and backward
    heads      heads are exchanged for rows
"""
