/* wlb-worker: the training program of WLB. */
#include <stdio.h>
#include <string.h>

#include "worker/train/train.h"

static void help(FILE *to)
{
	fputs("Usage: wlb-worker train OPTIONS    train a model (wlb-worker train --help)\n"
	      "       wlb-worker --version\n"
	      "       wlb-worker --help\n",
	      to);
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	if (strcmp(command, "train") == 0)
		return wlb_train(argc - 1, argv + 1);
	if (strcmp(command, "--version") == 0) {
		puts("wlb-worker " WLB_VERSION);
		return 0;
	}
	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
		help(stdout);
		return 0;
	}
	if (*command == '\0')
		help(stderr);
	else
		fprintf(stderr, "wlb-worker: '%s': no such command; wlb-worker --help lists them\n", command);
	return 2;
}
