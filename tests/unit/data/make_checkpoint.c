/* make_checkpoint DIR STEP SHARDS: saves the sample there, for tests of programs. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/data/sample_checkpoint.h"

int main(int argc, char **argv)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096];
	if (argc != 4) {
		fputs("make_checkpoint DIR STEP SHARDS\n", stderr);
		return 2;
	}
	sample_fill(&values, 1);
	const struct sample_grid grid = {atoi(argv[3]), 1};
	if (sample_save(argv[1], atoll(argv[2]), &values, grid, 0, path, &error) == 0)
		return 0;
	fprintf(stderr, "make_checkpoint: %s\n", error.message);
	return 1;
}
