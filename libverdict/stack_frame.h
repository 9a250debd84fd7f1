/* One frame of a stack: its function and the file of that; internal. */
#ifndef LIBVERDICT_STACK_FRAME_H
#define LIBVERDICT_STACK_FRAME_H

#include <stddef.h>

/* Writes it without the offset: "PMPI_Wait (libmpi.so.40)", "spin at train.c:101 (train)". */
void verdict_frame_write(const char *frame, char *text, size_t size);

/* Orders frames by function and file, without numbers: <0, 0 or >0. */
int verdict_frame_compare(const char *a, const char *b);

/* Whether the frame is inside a communication library or a library of the device. */
int verdict_frame_is_communication(const char *frame);

/* Whether it is inside the C library, as the frames of a system call are. */
int verdict_frame_is_c_library(const char *frame);

#endif
