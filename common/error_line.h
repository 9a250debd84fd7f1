/*
 * Finds why processes ended in the last lines that they wrote to stderr: the line of the exception itself, and not the
 * lines around it. Known are Python's tracebacks, also chained and with the marks of a rank before each line, the table
 * of torchrun, std::terminate, failed assertions, glibc's heap, and aborts of MPI. Pure parsers, no I/O.
 *
 * Where several processes have failed, the first one counts that has not failed because of another: a closed
 * connection, a signal of the launcher, a child.
 */
#ifndef COMMON_ERROR_LINE_H
#define COMMON_ERROR_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct wlb_error_line {
	bool known;
	char text[512];      /* "ValueError: loss is nan", to be shown: without control characters; cut where longer */
	char cause[256];     /* of a chained exception the first one, likewise; "": it is not chained */
	int rank;            /* that has written it; -1: not said */
	bool is_consequence; /* of the end of another process, whose error is not there */
};

/* Any bytes: `count` of them, with whatever ends the lines. */
void wlb_error_line_find(const char *bytes, size_t count, struct wlb_error_line *found);

/* For a program that has said why it ends in words of its own: "last line of stderr: cannot read shard 3", the last
 * line before the first that srun writes of a task's end, but none of Slurm and none of a rank that has lost its peer.
 * known is false where there is none. */
void wlb_error_line_last(const char *bytes, size_t count, struct wlb_error_line *found);

/* Reads the file that torch.distributed.elastic's `record` writes, TORCHELASTIC_ERROR_FILE: its JSON. Returns -1 where
 * it is none. */
int wlb_error_file_read(const char *bytes, size_t count, struct wlb_error_line *found);

#endif
