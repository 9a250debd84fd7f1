/* Finds the file of a kind of machine. */
#include "planner/data_file.h"
#include "planner/machine.h"

static int parse(const char *text, size_t bytes, void *machine, struct wlb_error *error)
{
	return wlb_machine_file_parse(text, bytes, machine, error);
}

int wlb_machine_file_read(const char *from, struct wlb_machine *machine, struct wlb_error *error)
{
	static const struct wlb_data_folder machines = {"machines", "WLB_MACHINES"};
	return wlb_data_file_read(&machines, from, parse, machine, error);
}
