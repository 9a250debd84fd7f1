/* A log in place of the kernel's: the linker calls the function below in place of that which opens /dev/kmsg (--wrap).
 * KERNEL_LOG is a file with a line "SECONDS_AGO PRIORITY TEXT" for each record, or "refused"; without it the log is
 * empty. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks/node/kernel_log.h"
#include "common/seconds.h"

enum { PIPE_BYTES = 1 << 20 };

int __wrap_wlb_kernel_log_open(struct wlb_error *error);

static void write_record(int fd, const char *line)
{
	char record[600], text[512];
	double ago_s;
	int priority;
	if (sscanf(line, "%lf %d %511[^\n]", &ago_s, &priority, text) != 3)
		abort();
	int bytes = snprintf(record, sizeof(record), "%d,7,%.0f,-;%s\n", priority, 1e6 * (wlb_now_s() - ago_s), text);
	if (write(fd, record, (size_t)bytes) != bytes)
		abort();
}

/* A pipe of packets, of which each read returns one, as /dev/kmsg returns records. */
int __wrap_wlb_kernel_log_open(struct wlb_error *error)
{
	const char *name = getenv("KERNEL_LOG");
	char line[512];
	int ends[2];
	if (name != NULL && strcmp(name, "refused") == 0)
		return wlb_fail(error, "/dev/kmsg: %s", strerror(EPERM));
	if (pipe2(ends, O_DIRECT | O_NONBLOCK) < 0 || fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		abort();
	FILE *file = name != NULL ? fopen(name, "r") : NULL;
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		write_record(ends[1], line);
	if (file != NULL)
		fclose(file);
	close(ends[1]);
	return ends[0];
}
