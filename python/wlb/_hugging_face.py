"""The callback for Hugging Face's Trainer: Trainer(..., callbacks=[wlb.HuggingFaceCallback()])."""
import os

from transformers import TrainerCallback

from ._metrics import checkpoint, log, quiet
from ._stop import should_stop


class HuggingFaceCallback(TrainerCallback):
    @quiet
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            # The last log is of the whole run: its train_loss is that of no step.
            prefix = "run/" if "train_runtime" in logs else ""
            values = {prefix + name: value for name, value in logs.items() if name not in ("step", "tokens")}
            log(step=state.global_step, **values)

    @quiet
    def on_save(self, args, state, control, **kwargs):
        """After the save: the Trainer has written this folder."""
        if state.is_world_process_zero:
            checkpoint(os.path.join(args.output_dir, "checkpoint-%d" % state.global_step), step=state.global_step)

    @quiet
    def on_step_end(self, args, state, control, **kwargs):
        if should_stop(state.global_step):
            control.should_save = control.should_training_stop = True
