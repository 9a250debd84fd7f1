/* CRC-32C (Castagnoli, polynomial 0x1edc6f41 reflected), as in RFC 3720 and in TFRecord. */
#ifndef FOLLOW_CRC32C_H
#define FOLLOW_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of bytes that follow those of `crc`; 0 before the first. */
uint32_t wlb_crc32c(uint32_t crc, const void *data, size_t length);

#endif
