#include "spank/program.h"

#include <string.h>

bool wlb_program_is_worker(spank_t sp)
{
	int argc = 0;
	char **argv = NULL;
	if (spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1)
		return false;
	const char *slash = strrchr(argv[0], '/');
	return strcmp(slash != NULL ? slash + 1 : argv[0], "wlb-worker") == 0;
}
