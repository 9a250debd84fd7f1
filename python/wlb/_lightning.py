"""The callback for Lightning: Trainer(..., callbacks=[wlb.LightningCallback()])."""
import os

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from ._metrics import checkpoint, log, quiet
from ._stop import should_stop


class LightningCallback(Callback):
    def __init__(self):
        self._logged_step = -1
        self._told_path = ""

    def _log(self, trainer, outputs):
        values = {name: value for name, value in trainer.callback_metrics.items() if name not in ("step", "tokens")}
        if "loss" not in values and isinstance(outputs, dict) and "loss" in outputs:
            values["loss"] = outputs["loss"]
        log(step=trainer.global_step, **values)

    def _tell_checkpoint(self, trainer):
        """Lightning calls nothing after a save, but its ModelCheckpoint knows what it wrote last."""
        saver = trainer.checkpoint_callback
        for path in (getattr(saver, "last_model_path", ""), getattr(saver, "best_model_path", "")):
            if path and path != self._told_path and os.path.exists(path):
                self._told_path = path
                checkpoint(path, step=getattr(saver, "_last_global_step_saved", None))
                return

    @quiet
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step == self._logged_step:  # gradients are accumulated
            return
        # Lightning reads the values for its own loggers at the same steps.
        if trainer.is_global_zero and step % max(trainer.log_every_n_steps, 1) == 0:
            self._logged_step = step
            self._log(trainer, outputs)
            self._tell_checkpoint(trainer)
        if should_stop(step):
            trainer.should_stop = True

    @quiet
    def on_validation_end(self, trainer, pl_module):
        if trainer.is_global_zero and not trainer.sanity_checking:
            self._log(trainer, None)
            self._tell_checkpoint(trainer)

    @quiet
    def on_train_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            self._tell_checkpoint(trainer)
