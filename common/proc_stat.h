/* Reads the fields of /proc/PID/stat and /proc/PID/task/TID/stat, as proc(5) numbers them. */
#ifndef COMMON_PROC_STAT_H
#define COMMON_PROC_STAT_H

enum {
	WLB_PROC_STAT_SIZE = 1024,
	WLB_PROC_STATE = 3, /* a letter: R, S, D, T, t, Z, ... */
	WLB_PROC_PARENT = 4,
	WLB_PROC_STARTED = 22, /* clock ticks since the boot */
	WLB_PROC_EXIT_CODE = 52,
};

/* Returns a field from WLB_PROC_STATE on, read into `line`, which is split; NULL where there is none. `path` is that of
 * the file. */
const char *wlb_proc_stat_field(const char *path, int field, char line[WLB_PROC_STAT_SIZE]);

#endif
