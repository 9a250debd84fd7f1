#include "planner/machine_choose.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/machine.h"

static const char remedy[] = "name its machine file by WLB_MACHINE, such as WLB_MACHINE=H100 or WLB_MACHINE=FILE.json";

/* Reads the machine of a GPU type: of the whole type, else of its first word that names one, such as "h100" of
 * "nvidia_h100_80gb_hbm3". */
static int read_gpu_type(const char *type, struct wlb_machine *machine, struct wlb_error *error)
{
	static const char separators[] = "_- ";
	char text[256];
	if (wlb_machine_file_read(type, machine, error) == 0)
		return 0;
	size_t length = strlen(type);
	if (length < sizeof(text) && strpbrk(type, separators) != NULL) {
		char *rest = memcpy(text, type, length + 1);
		for (const char *word; (word = strsep(&rest, separators)) != NULL;)
			if (*word != '\0' && wlb_machine_file_read(word, machine, NULL) == 0)
				return 0;
	}
	return -1;
}

static void limit_memory(int ranks_per_node, struct wlb_machine *machine)
{
	double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / ranks_per_node;
	if (bytes > 0.0 && bytes < machine->memory_bytes)
		machine->memory_bytes = bytes;
}

int wlb_machine_choose(const char *named, const char *gpu_type, int ranks_per_node, struct wlb_machine *machine,
                       const char **from, struct wlb_error *error)
{
	const char *variable = getenv("WLB_MACHINE");
	if (named != NULL || (variable != NULL && *variable != '\0')) {
		*from = named != NULL ? "--machine" : "WLB_MACHINE";
		if (wlb_machine_file_read(named != NULL ? named : variable, machine, error) == 0)
			return 0;
		return wlb_fail_in(error, "%s", *from);
	}
	if (gpu_type != NULL && *gpu_type != '\0') {
		*from = "the type of Slurm's GRES";
		if (read_gpu_type(gpu_type, machine, error) == 0)
			return 0;
		wlb_fail_in(error, "GPU type '%.60s' of Slurm's GRES", gpu_type);
		struct wlb_error unknown = *error;
		return wlb_fail(error, "%.700s; %s", unknown.message, remedy);
	}
	*from = "the CPU device";
	if (wlb_machine_file_read("CPU", machine, error) < 0)
		return -1;
	limit_memory(ranks_per_node, machine);
	return 0;
}
