#include "planner/machine_choose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf.h"
#include "planner/machine.h"
#include "planner/node_type.h"

enum { TYPES_BYTES = 4096 };

const char wlb_machine_slower[] = "the slowest of the types of Slurm's GRES";
static const char remedy[] =
	"name its machine file by WLB_MACHINE, such as WLB_MACHINE=H100 or WLB_MACHINE=FILE.json, or by "
	"the line machine = H100 of wlb.conf";

/* Returns 1 for the profile of a part of a GPU (MIG), such as "1g.10gb" or "1c.2g.20gb". */
static int is_part_of_gpu(const char *word)
{
	const char *sum = strcasestr(word, "g.");
	return sum != NULL && sum > word && isdigit((unsigned char)sum[-1]) && isdigit((unsigned char)sum[2]);
}

/* A process sees 39.5 and 79.14 GiB of GPUs that are sold as 40 and 80 GB: github.com/TianheWu/CoSeR/issues/10,
 * github.com/lianqi1008/Control-GIC/issues/6. */
static const double gb_bytes = 1.06e9;

/* Returns the bytes of a word such as "40gb"; INFINITY for another word. */
static double bytes_of_word(const char *word)
{
	char *end;
	long gigabytes = strtol(word, &end, 10);
	return gigabytes > 0 && strcasecmp(end, "gb") == 0 ? gb_bytes * (double)gigabytes : INFINITY;
}

/* Reads the machine of a GPU type: of the whole type, else of the first word of the type that names a machine, such as
 * "h100" of "nvidia_h100_80gb_hbm3". The machine gets at most the memory that another word of the type names: a GPU may
 * have less than the machine file of its name says, as a100-sxm4-40gb has. */
static int read_gpu_type(const char *type, struct wlb_machine *machine, struct wlb_error *error)
{
	static const char separators[] = "_- ";
	char text[256];
	double most_bytes = INFINITY;
	if (wlb_machine_file_read(type, machine, error) == 0)
		return 0;
	size_t length = strlen(type);
	if (length >= sizeof(text) || strpbrk(type, separators) == NULL)
		return -1;
	int found = 0;
	char *rest = memcpy(text, type, length + 1);
	for (const char *word; (word = strsep(&rest, separators)) != NULL;) {
		if (is_part_of_gpu(word))
			return wlb_fail(error, "%s is a part of a GPU (MIG), and machine files are of whole ones",
			                word);
		most_bytes = fmin(most_bytes, bytes_of_word(word));
		found = found || (*word != '\0' && wlb_machine_file_read(word, machine, NULL) == 0);
	}
	if (!found)
		return -1;
	machine->memory_bytes = fmin(machine->memory_bytes, most_bytes);
	return 0;
}

static void limit_memory(int ranks_per_node, struct wlb_machine *machine)
{
	machine->memory_bytes = fmin(machine->memory_bytes, wlb_job_memory_bytes() / ranks_per_node);
}

/* Reads the machine of each type, and keeps the slowest with the least memory. */
static int read_slowest(const char *types, struct wlb_machine *machine, int *count, struct wlb_error *error)
{
	char text[TYPES_BYTES], *rest = text;
	struct wlb_machine *other = malloc(sizeof(*other));
	int rc = other != NULL ? 0 : wlb_fail(error, "out of memory for a machine");
	snprintf(text, sizeof(text), "%s", types);
	*count = 0;
	for (const char *type; rc == 0 && (type = strsep(&rest, ",")) != NULL; (*count)++) {
		rc = read_gpu_type(type, other, error);
		if (rc < 0)
			wlb_fail_in(error, "GPU type '%.60s' of Slurm's GRES", type);
		else if (*count == 0)
			*machine = *other;
		if (rc < 0 || *count == 0)
			continue;
		double least = fmin(machine->memory_bytes, other->memory_bytes);
		if (other->peak_flops < machine->peak_flops)
			*machine = *other;
		machine->memory_bytes = least;
	}
	free(other);
	return rc;
}

struct conf {
	char machine[1024];
};

static int take_key(void *context, const char *key, const char *value, struct wlb_error *error)
{
	struct conf *conf = context;
	(void)error;
	if (strcmp(key, "machine") == 0)
		snprintf(conf->machine, sizeof(conf->machine), "%s", value);
	return 0;
}

/* Reads the machine that wlb.conf names. Returns 1 where it names none. */
static int read_conf(struct wlb_machine *machine, struct wlb_error *error)
{
	struct conf conf = {0};
	if (wlb_conf_read(take_key, &conf, error) < 0)
		return -1;
	if (conf.machine[0] == '\0')
		return 1;
	return wlb_machine_file_read(conf.machine, machine, error) < 0
	               ? wlb_fail_in(error, "machine of %s", wlb_conf_path())
	               : 0;
}

/* Reads the machine that wlb.conf names for GPUs of which `unknown` says what is not known. */
static int read_unknown(const char *unknown, struct wlb_machine *machine, const char **from, struct wlb_error *error)
{
	*from = "wlb.conf";
	int rc = read_conf(machine, error);
	return rc == 1 ? wlb_fail(error, "%.700s; %s", unknown, remedy) : rc;
}

static int read_types(const char *types, struct wlb_machine *machine, const char **from, struct wlb_error *error)
{
	struct wlb_error unknown;
	int count;
	*from = "the type of Slurm's GRES";
	if (read_slowest(types, machine, &count, &unknown) == 0) {
		*from = count > 1 ? wlb_machine_slower : *from;
		return 0;
	}
	return read_unknown(unknown.message, machine, from, error);
}

int wlb_machine_choose(const char *named, const char *gpu_types, int ranks_per_node, struct wlb_machine *machine,
                       const char **from, struct wlb_error *error)
{
	const char *variable = getenv("WLB_MACHINE");
	if (named != NULL || (variable != NULL && *variable != '\0')) {
		*from = named != NULL ? "--machine" : "WLB_MACHINE";
		if (wlb_machine_file_read(named != NULL ? named : variable, machine, error) == 0)
			return 0;
		return wlb_fail_in(error, "%s", *from);
	}
	if (gpu_types != NULL && *gpu_types != '\0')
		return read_types(gpu_types, machine, from, error);
	if (gpu_types != NULL)
		return read_unknown("nothing was measured of these GPUs, and Slurm's GRES names no type of them",
		                    machine, from, error);
	*from = "wlb.conf";
	int rc = read_conf(machine, error);
	if (rc <= 0)
		return rc;
	*from = "the CPU device";
	if (wlb_machine_file_read("CPU", machine, error) < 0)
		return -1;
	limit_memory(ranks_per_node, machine);
	return 0;
}
