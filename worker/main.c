/* wlb-worker: the training program of WLB. */
#include "common/command.h"
#include "worker/launch/options.h"
#include "worker/train/gpus.h"
#include "worker/train/train.h"

static const struct wlb_command train = {
	.name = "train",
	.summary = "Train a model",
	.options = &wlb_train_option_table,
	.main = wlb_train,
};

static const struct wlb_command *const commands[] = {&train, &wlb_worker_gpus};

static const struct wlb_program program = {
	.name = "wlb-worker",
	.version = "wlb-worker " WLB_VERSION,
	.about = "Trains language models on the ranks of a Slurm job.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	return wlb_program_main(&program, argc, argv);
}
