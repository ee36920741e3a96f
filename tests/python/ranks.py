"""ranks.py - functions that run in several processes, which are the ranks of a group: gloo on the CPU, or NCCL where
FLASHGEN_TEST_DEVICE names a GPU, one a rank."""
import datetime
import multiprocessing
import os
import pathlib
import tempfile
import traceback

from device import DEVICE, torch

SECONDS = 60  # that a message may take, unless a test is of just that
IS_CPU = DEVICE == "cpu"
MOST = 4 if IS_CPU else min(4, torch.cuda.device_count())  # ranks that tests have


def run(n, function, *arguments, seconds=SECONDS):
    """What function(rank, *arguments) gives on each of n ranks: (value, None) or (None, the exception's kind and text); None of
    one that ended itself."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn" if torch.cuda.is_available() else "fork")  # autograd has threads there
        processes = [context.Process(target=work, args=(folder, rank, n, seconds, function, arguments)) for rank in range(n)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        files = [pathlib.Path(folder, str(rank)) for rank in range(n)]
        return [torch.load(file, weights_only=False) if file.exists() else None for file in files]


def work(folder, rank, n, seconds, function, arguments):
    """In a rank's process."""
    torch.set_num_threads(1)
    if not IS_CPU:
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group("gloo" if IS_CPU else "nccl", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=n, timeout=datetime.timedelta(seconds=seconds))
    try:
        result = function(rank, *arguments), None
    except Exception as error:
        result = None, (type(error).__name__, str(error), traceback.format_exc())
    torch.save(result, pathlib.Path(folder, str(rank)))
    os._exit(0)  # other ranks may have ended: nothing here waits for them


def home(rank):
    """The device of a rank."""
    return torch.device("cpu" if IS_CPU else f"cuda:{rank}")
