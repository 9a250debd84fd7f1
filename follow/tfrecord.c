#include "follow/tfrecord.h"

#include <string.h>

#include "follow/crc32c.h"

enum { LENGTH_BYTES = 8, CRC_BYTES = 4, HEAD_BYTES = WLB_TFRECORD_HEAD_BYTES, MASK_DELTA = (int)0xa282ead8 };

static uint64_t read_little(const unsigned char *bytes, int count)
{
	uint64_t value = 0;
	for (int i = count - 1; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

static void write_little(unsigned char *bytes, int count, uint64_t value)
{
	for (int i = 0; i < count; i++, value >>= 8)
		bytes[i] = (unsigned char)value;
}

static uint32_t masked_crc(const unsigned char *bytes, size_t length)
{
	uint32_t crc = wlb_crc32c(0, bytes, length);
	return (crc >> 15 | crc << 17) + (uint32_t)MASK_DELTA;
}

/* Whether the masked CRC of the bytes stands behind them. */
static int is_intact(const unsigned char *bytes, size_t length)
{
	return read_little(bytes + length, CRC_BYTES) == masked_crc(bytes, length);
}

enum wlb_tfrecord_result wlb_tfrecord_read(const unsigned char *bytes, size_t count, struct wlb_tfrecord *record)
{
	memset(record, 0, sizeof(*record));
	if (count < HEAD_BYTES)
		return WLB_TFRECORD_PART;
	uint64_t length = read_little(bytes, LENGTH_BYTES);
	if (!is_intact(bytes, LENGTH_BYTES) || length > INT64_MAX - WLB_TFRECORD_FRAME_BYTES)
		return WLB_TFRECORD_DAMAGED_LENGTH;
	record->bytes = (int64_t)length + WLB_TFRECORD_FRAME_BYTES;
	if (length > WLB_TFRECORD_DATA_MOST)
		return WLB_TFRECORD_LONG;
	if (count < (size_t)record->bytes) {
		record->bytes = 0;
		return WLB_TFRECORD_PART;
	}
	record->data = bytes + HEAD_BYTES;
	record->length = (size_t)length;
	return is_intact(record->data, record->length) ? WLB_TFRECORD_DATA : WLB_TFRECORD_DAMAGED_DATA;
}

size_t wlb_tfrecord_frame(unsigned char *record, size_t length)
{
	unsigned char *data = record + HEAD_BYTES;
	write_little(record, LENGTH_BYTES, length);
	write_little(record + LENGTH_BYTES, CRC_BYTES, masked_crc(record, LENGTH_BYTES));
	write_little(data + length, CRC_BYTES, masked_crc(data, length));
	return length + WLB_TFRECORD_FRAME_BYTES;
}
