/* wlb-data: makes datasets and prints facts about them. `wlb data` starts it. */
#include "worker/data/commands.h"

static const struct wlb_command *const commands[] = {&wlb_data_command_build, &wlb_data_command_info};

static const struct wlb_program program = {
	.name = "wlb data",
	.version = "wlb-data " WLB_VERSION,
	.about = "Makes training datasets from text, and shows what is in one.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	return wlb_program_main(&program, argc, argv);
}
