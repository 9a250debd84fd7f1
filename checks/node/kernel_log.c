#include "checks/node/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The buffer of the kernel is 16 MiB on large machines. */
static const int64_t RECORDS_MOST = 200000, BYTES_MOST = 64 << 20;

/* The priority is 8 times the facility, which is 0 for the kernel's own records, and a level. */
enum { PRIORITIES_OF_THE_KERNEL = 8 };

/* Parses a whole number of at most 18 digits before `end`, and moves *at behind it. Returns -1 where there is none. */
static int read_number(const char **at, char end, int64_t *number)
{
	int digits = 0;
	*number = 0;
	for (; **at >= '0' && **at <= '9' && digits < 18; digits++)
		*number = 10 * *number + (*(*at)++ - '0');
	if (digits == 0 || **at != end)
		return -1;
	++*at;
	return 0;
}

int wlb_kernel_record_parse(char *text, size_t bytes, struct wlb_kernel_record *record)
{
	int64_t priority, sequence, at_us;
	const char *at = text;
	text[bytes] = '\0';
	if (read_number(&at, ',', &priority) < 0 || read_number(&at, ',', &sequence) < 0 ||
	    read_number(&at, ',', &at_us) < 0 || priority >= PRIORITIES_OF_THE_KERNEL)
		return 0;
	char *line = text + (at - text) + strcspn(at, ";\n");
	if (*line++ != ';')
		return 0;
	line[strcspn(line, "\n")] = '\0'; /* lines with more about the device may follow */
	*record = (struct wlb_kernel_record){.at_s = 1e-6 * (double)at_us, .text = line};
	return 1;
}

int wlb_kernel_log_open(struct wlb_error *error)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return wlb_fail(error, "/dev/kmsg: %s", strerror(errno));
	(void)lseek(fd, 0, SEEK_DATA); /* where this fails reading begins at the oldest record */
	return fd;
}

void wlb_kernel_log_begin(struct wlb_kernel_log *log, int fd)
{
	log->fd = fd;
	log->records_left = RECORDS_MOST;
	log->bytes_left = BYTES_MOST;
}

/* Returns the bytes that one read has put into the buffer, 0 at the end of the log, -1 with the reason. */
static ssize_t read_record(struct wlb_kernel_log *log, struct wlb_error *error)
{
	for (; log->records_left > 0 && log->bytes_left > 0; log->records_left--) {
		ssize_t bytes = read(log->fd, log->buffer, WLB_KERNEL_RECORD_BYTES);
		if (bytes >= 0) {
			log->records_left--;
			log->bytes_left -= bytes;
			return bytes;
		}
		if (errno == EAGAIN)
			return 0;
		/* EPIPE: the record was overwritten before it was read; the next read returns one that is there. */
		if (errno != EPIPE && errno != EINTR)
			return wlb_fail(error, "the log of the kernel: %s", strerror(errno));
	}
	return wlb_fail(error, "the log of the kernel has more records than are read");
}

int wlb_kernel_log_next(struct wlb_kernel_log *log, struct wlb_kernel_record *record, struct wlb_error *error)
{
	ssize_t bytes;
	while ((bytes = read_record(log, error)) > 0)
		if (wlb_kernel_record_parse(log->buffer, (size_t)bytes, record))
			return 1;
	return (int)bytes;
}
