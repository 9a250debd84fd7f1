/* Reads the JSON files that WLB comes with and that a user may add to: share/wlb/machines, share/wlb/trainers. */
#ifndef PLANNER_DATA_FILE_H
#define PLANNER_DATA_FILE_H

#include <stddef.h>

#include "libwlb/wlb.h"

struct wlb_data_folder {
	const char *name;     /* below share/wlb and libwlb: "machines" */
	const char *variable; /* of the environment, which names another folder */
};

/* Reads the text of a file. `from` is the file where it ends in ".json", else the name, in any case of letters, of one
 * in the folder: the one that the variable names, else ../share/wlb/NAME from the program's own folder. `parse` is
 * called with the text and `into`. Returns -1 with the file, or the names that there are. */
int wlb_data_file_read(const struct wlb_data_folder *folder, const char *from,
                       int (*parse)(const char *text, size_t bytes, void *into, struct wlb_error *error), void *into,
                       struct wlb_error *error);

#endif
