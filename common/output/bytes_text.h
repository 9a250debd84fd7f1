/* Sizes as short texts. */
#ifndef COMMON_OUTPUT_BYTES_TEXT_H
#define COMMON_OUTPUT_BYTES_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "64.0 KiB" */
void wlb_bytes_format(int64_t bytes, char *text, size_t size);

#endif
