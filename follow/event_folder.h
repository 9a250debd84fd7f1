/* Finds event files of TensorBoard below a folder. Symbolic links are not followed below it, and names that begin with
 * a dot are passed over. */
#ifndef FOLLOW_EVENT_FOLDER_H
#define FOLLOW_EVENT_FOLDER_H

#include <stdint.h>

enum {
	WLB_EVENT_DEPTH_MOST = 8,
	WLB_EVENT_ENTRIES_MOST = 20000, /* looked at in one search; each folder is read twice */
	WLB_EVENT_NAME_SIZE = 512,      /* of a file's path below the folder; files with longer ones are not found */
};

/* Takes a file: its path below the folder, what stands before its names, and its last change in seconds since 1970. */
typedef void wlb_event_folder_take(void *context, const char *name, const char *prefix, double changed_s);

/* Returns how many folders could not be read. */
int64_t wlb_event_folder_search(const char *folder, wlb_event_folder_take *take, void *context);

#endif
