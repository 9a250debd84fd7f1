/* wlb-ckpt, which `wlb ckpt` starts. */
#include <locale.h>

#include "worker/checkpoint/cli/commands.h"

static const struct wlb_command *const commands[] = {&wlb_ckpt_list, &wlb_ckpt_show, &wlb_ckpt_verify, &wlb_ckpt_prune};

static const struct wlb_program program = {
	.name = "wlb ckpt",
	.version = "wlb-ckpt " WLB_VERSION,
	.about = "Lists, shows, verifies and removes the checkpoints of wlb-worker.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, ""); /* for the widths of characters */
	return wlb_program_main(&program, argc, argv);
}
