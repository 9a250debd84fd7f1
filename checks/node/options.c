#include "checks/node/options.h"

#include <string.h>

#include "worker/launch/options.h"

#define FIELD(name) offsetof(struct wlb_check_options, name)

static const struct wlb_option rows[] = {
	{WLB_OPTION(TEXT, "only", FIELD(only), "LIST",
                    "only these checks, separated by commas: products, speed, memory, disk, links; with --device cuda "
                    "the first three include gpus, nvml and xid (default: all; links where --peer is given)"),
         .choices = "products|speed|memory|disk|links", .open = true},
	{WLB_OPTION(REAL, "seconds", FIELD(seconds), "X", "about how long products, speed and memory take together"),
         .min = 0.1, .max = 3600, .initial = "5"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "print JSON")},
	{WLB_OPTION(FLAG, "report", FIELD(report), NULL,
                    "send what was found to the coordinator, which takes it from root and SlurmUser: runs then avoid a "
                    "node that failed")},
	{WLB_OPTION(FLAG, "if-suspected", FIELD(if_suspected), NULL,
                    "exit at once unless the coordinator lists this node as suspected: a run lost or excluded it, "
                    "or it failed a check; the suspicion ends when a --report has exact products and passes every "
                    "check that had failed")},
	{WLB_OPTION(CHOICE, "device", FIELD(device), NULL, "whose products, speed and memory are checked"),
         .choices = "cpu|cuda", .initial = "cpu"},
	{WLB_OPTION(CHOICE, "dtype", FIELD(dtype), NULL,
                    "element type, as in training; auto: bfloat16 on a GPU, float32 on a CPU"),
         .choices = "float32|float64|bfloat16|auto", .initial = "auto"},
	{WLB_OPTION(INT, "gpus", FIELD(gpus), "N",
                    "with --device cuda: fail with fewer than N GPUs; 0: any number, but exit with code 2 if there is "
                    "none"),
         .max = 1024, .initial = "0"},
	{WLB_OPTION(REAL, "answer-seconds", FIELD(answer_s), "X",
                    "with --device cuda: how long counting the GPUs, opening one, and an answer of NVML may take each; "
                    "what takes longer fails"),
         .min = 1, .max = 600, .initial = "60"},
	{WLB_OPTION(INT, "nvlinks", FIELD(nvlinks), "N",
                    "with --device cuda: a GPU with fewer active links of NVLink fails; 0: one with fewer than another "
                    "GPU of the node"),
         .max = 36, .initial = "0"},
	{WLB_OPTION(TEXT, "machine", FIELD(machine), "NAME|FILE",
                    "the machine file of 'wlb calibrate' with which speeds are compared (default: WLB_MACHINE, else "
                    "machine = of wlb.conf)")},
	{WLB_OPTION(REAL, "slower-than", FIELD(slower_than), "X",
                    "a device whose products take this factor longer than the machine file says, or that has this "
                    "factor less processor time than elapsed time, fails"),
         .min = 1.01, .max = 1000, .initial = "1.3"},
	{WLB_OPTION(REAL, "bandwidth-slower-than", FIELD(bandwidth_slower_than), "X",
                    "a device whose additions and copies in memory take this factor longer than the machine file says, "
                    "each time that they are measured, fails (default: 4 on the CPUs of a virtual machine, else "
                    "1.75)"),
         .min = 1.01, .max = 1000},
	{WLB_OPTION(INT, "threads", FIELD(threads), "N",
                    "threads of a rank, as when the machine file was measured; 0: the CPUs that it may use, divided by "
                    "the ranks of a node in that file"),
         .max = 1024, .initial = "0"},
	{WLB_OPTION(INT, "seed", FIELD(seed), "N", "of the numbers that are multiplied and stored"),
         .max = WLB_OPTION_UNBOUNDED / 1e3, .initial = "1"},
	{WLB_OPTION(INT, "memory-mib", FIELD(memory_mib), "N",
                    "MiB of memory that are written and read back: of each GPU, or of all CPUs together, with 16 for a "
                    "CPU at least; an eighth of the free memory at most"),
         .min = 1, .max = 1 << 20, .initial = "128"},
	{WLB_OPTION(LIST, "dir", FIELD(dirs), "DIR",
                    "a directory whose file system is checked; may be repeated (default: WLB_SPOOL_DIR if set, and "
                    "TMPDIR, else /tmp)")},
	{WLB_OPTION(INT, "disk-mib", FIELD(disk_mib), "N", "MiB that are written to a directory and read back"),
         .min = 1, .max = 1 << 20, .initial = "16"},
	{WLB_OPTION(REAL, "disk-mib-per-s", FIELD(disk_mib_per_s), "X",
                    "a directory to which fewer MiB are written in a second, or read from it, fails"),
         .min = 0.001, .max = 1e9, .initial = "10"},
	{WLB_OPTION(LIST, "peer", FIELD(peers), "HOST:PORT",
                    "a node where 'wlb check-node --serve PORT' runs: the link to it is measured; may be repeated")},
	{WLB_OPTION(TEXT, "serve", FIELD(serve), "PORT",
                    "check nothing, but answer one --peer within --seconds; PORT 0: any, which is printed")},
	{WLB_OPTION(REAL, "link-gbit-per-s", FIELD(link_gbit_per_s), "X",
                    "a link that carries fewer Gbit in a second, in either direction, fails; 0: none fails"),
         .max = 1e6, .initial = "0"},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

const struct wlb_option_table wlb_check_option_table = {
	.command = "wlb check-node",
	.about = "Checks the node that it runs on: matrix products (GEMM) with exactly known results, their speed and "
		 "that of memory against the "
		 "machine file, memory, file systems, links. Needs no other rank and no coordinator.",
	.notes = "Exit code 0: healthy; 1: unhealthy, with the first reason as one line on standard error; 2: wrong "
		 "usage, or the node could not be checked.",
	.options = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
};

static const struct {
	const char *name;
	enum wlb_check check;
} names[] = {{"products", WLB_CHECK_PRODUCTS},
             {"speed", WLB_CHECK_SPEED},
             {"memory", WLB_CHECK_MEMORY},
             {"disk", WLB_CHECK_DISK},
             {"links", WLB_CHECK_LINKS}};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static unsigned check_of(const char *word, size_t length)
{
	for (int i = 0; i < NAMES; i++)
		if (strlen(names[i].name) == length && strncmp(names[i].name, word, length) == 0)
			return names[i].check;
	return 0;
}

static int choose_checks(struct wlb_check_options *options, struct wlb_error *error)
{
	options->checks = WLB_CHECK_PRODUCTS | WLB_CHECK_SPEED | WLB_CHECK_MEMORY | WLB_CHECK_DISK |
	                  (options->peers.count > 0 ? WLB_CHECK_LINKS : 0);
	if (options->only == NULL)
		return 0;
	options->checks = 0;
	for (const char *word = options->only;; word++) {
		size_t length = strcspn(word, ",");
		unsigned check = check_of(word, length);
		if (check == 0)
			return wlb_fail(error,
			                "--only '%.*s': must be products, speed, memory, disk or links, separated by "
			                "commas",
			                (int)(length < 100 ? length : 100), word);
		options->checks |= check;
		word += length;
		if (*word == '\0')
			return 0;
	}
}

static int check_list(const char *option, const struct wlb_option_list *list, struct wlb_error *error)
{
	for (int i = 0; i < list->count; i++)
		if (*list->texts[i] == '\0')
			return wlb_fail(error, "%s '': must be a text that is not empty", option);
	if (list->count <= WLB_CHECK_LIST_MOST)
		return 0;
	return wlb_fail(error, "%s is given %d times: %d at most; call the command again for the others", option,
	                list->count, WLB_CHECK_LIST_MOST);
}

static bool has_word(char *line, const char *word)
{
	char *rest;
	for (char *each = strtok_r(line, " \t\n", &rest); each != NULL; each = strtok_r(NULL, " \t\n", &rest))
		if (strcmp(each, word) == 0)
			return true;
	return false;
}

bool wlb_is_virtual_machine(const char *cpuinfo)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file = fopen(cpuinfo, "re");
	if (file == NULL)
		return false;
	while (getline(&line, &size, file) > 0)
		if (strncmp(line, "flags", 5) == 0) {
			found = has_word(line, "hypervisor");
			break;
		}
	free(line);
	fclose(file);
	return found;
}

/* How many times as long as calibrated an addition or a copy may take. On a virtual machine, where other guests use the
 * bandwidth, even the fastest repetitions took 1.9 and 2.1 times as long in four measurements within 20 s, in 2 of 100
 * checks (scripts/bench recovery). */
static double bandwidth_slower_than(const struct wlb_check_options *options)
{
	return options->device == WLB_DEVICE_CPU && wlb_is_virtual_machine("/proc/cpuinfo") ? 4.0 : 1.75;
}

int wlb_check_options_complete(struct wlb_check_options *options, struct wlb_error *error)
{
	if (choose_checks(options, error) < 0 || check_list("--dir", &options->dirs, error) < 0 ||
	    check_list("--peer", &options->peers, error) < 0)
		return -1;
	if ((options->checks & WLB_CHECK_LINKS) != 0 && options->peers.count == 0)
		return wlb_fail(error, "--only links: needs --peer HOST:PORT, where wlb check-node --serve PORT runs");
	if (options->serve != NULL && options->peers.count > 0)
		return wlb_fail(error, "--serve and --peer: one side serves, the other names it; give one of them");
	if (options->serve != NULL && options->report)
		return wlb_fail(error, "--serve and --report: the side with --peer measures the link; report there");
	if (options->if_suspected && options->serve != NULL)
		return wlb_fail(error,
		                "--serve and --if-suspected: a suspected node is checked by --peer; give one of them");
	if (options->bandwidth_slower_than == 0.0)
		options->bandwidth_slower_than = bandwidth_slower_than(options);
	return wlb_dtype_choose((enum wlb_device_kind)options->device, "--dtype bfloat16", &options->dtype, error);
}
