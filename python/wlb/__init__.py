"""Tells WLB of a training run's steps and checkpoints, and asks it whether to stop.

    import wlb

    for step in range(first, last):
        loss = train(step)
        wlb.log(step=step, loss=loss, tokens=4096, lr=rate)
        if wlb.should_stop(step):
            path = save(step)
            wlb.checkpoint(path, step=step)
            break

Outside of a run of WLB each call returns at once and does nothing. No call raises an exception or waits for anybody. A number that is
on a GPU is read as .item() reads it, which waits for the GPU: log every so many steps, or give numbers of the host. checkpoint adds up
the sizes of the files at the path, for 0.1 s at most.

Call log from one rank, or from all: the values of the lowest rank count. Call should_stop from rank 0, or from all after each step. For
Hugging Face's Trainer there is wlb.HuggingFaceCallback(), for Lightning wlb.LightningCallback().
"""
from ._metrics import checkpoint, log
from ._stop import should_stop

__all__ = ["HuggingFaceCallback", "LightningCallback", "checkpoint", "log", "should_stop"]


def __getattr__(name):
    """The callbacks, whose classes need the trainer's package: imported when they are asked for."""
    if name == "HuggingFaceCallback":
        from ._hugging_face import HuggingFaceCallback
        return HuggingFaceCallback
    if name == "LightningCallback":
        from ._lightning import LightningCallback
        return LightningCallback
    raise AttributeError("module 'wlb' has no attribute %r" % name)
