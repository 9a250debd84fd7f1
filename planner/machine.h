/* Reads the machine file of a kind of node, as in libwlb/machines, into struct wlb_machine. */
#ifndef PLANNER_MACHINE_H
#define PLANNER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/options.h"
#include "libwlb/wlb.h"

/* The row of --machine in a table of options; `field` is the offset of a const char *. */
#define WLB_MACHINE_OPTION(field)                                                                                      \
	.name = "machine", .kind = WLB_OPTION_TEXT, .offset = (field), .initial = "H100",                              \
	.choices = "A100|B200|B300|CPU|GB200|GB300|H100|H100-500W|H200|MI300X", .open = true, .value = "NAME|FILE",    \
	.help = "kind of GPU and node: H100, H100-500W, H200, B200, B300, GB200, GB300, A100, MI300X, CPU, or a file " \
	        "like those "                                                                                          \
		"of share/wlb/machines"

/* `from` is a file where it ends in ".json", else the name, in any case of letters, of one in the folder of machines:
 * WLB_MACHINES where it is set, else ../share/wlb/machines from the program's own folder. -1 with the file, field,
 * value and rule, or the names that there are. */
int wlb_machine_file_read(const char *from, struct wlb_machine *machine, struct wlb_error *error);

/* Parses the text of such a file. */
int wlb_machine_file_parse(const char *text, size_t bytes, struct wlb_machine *machine, struct wlb_error *error);

#endif
