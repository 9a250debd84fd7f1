/*
 * Finds and frames the records of a TFRecord file, in which TensorBoard's event files are framed
 * (tensorflow/core/lib/io/ record_writer.h; the same in tensorboard/summary/writer/record_writer.py). All numbers are
 * little-endian:
 *
 *     uint64 length
 *     uint32 masked CRC-32C of length
 *     byte   data[length]
 *     uint32 masked CRC-32C of data
 *
 * masked(crc) = ((crc >> 15) | (crc << 17)) + 0xa282ead8. Records follow each other without a gap, and nothing marks
 * where one begins: behind a damaged length no record can be found.
 *
 * Pure: no I/O, no allocation.
 */
#ifndef FOLLOW_TFRECORD_H
#define FOLLOW_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
	WLB_TFRECORD_FRAME_BYTES = 16,  /* around the data */
	WLB_TFRECORD_DATA_MOST = 65536, /* longer ones are images, histograms and graphs: nothing of a step */
};

enum wlb_tfrecord_result {
	WLB_TFRECORD_DATA,           /* a whole record, of DATA_MOST bytes at most */
	WLB_TFRECORD_PART,           /* it does not end here: more bytes may follow */
	WLB_TFRECORD_LONG,           /* a longer one begins; its data was not looked at */
	WLB_TFRECORD_DAMAGED_DATA,   /* the next record can be found */
	WLB_TFRECORD_DAMAGED_LENGTH, /* it cannot */
};

enum { WLB_TFRECORD_HEAD_BYTES = 12 }; /* of the frame, those before the data */

struct wlb_tfrecord {
	const unsigned char *data;
	size_t length;
	int64_t bytes; /* of the record with its frame; 0 of PART and DAMAGED_LENGTH */
};

/* Looks at the record that begins with these bytes. */
enum wlb_tfrecord_result wlb_tfrecord_read(const unsigned char *bytes, size_t count, struct wlb_tfrecord *record);
/* Frames `length` bytes of data that are WLB_TFRECORD_HEAD_BYTES behind `record`, which has room for the frame. Returns
 * the bytes of the record with its frame. */
size_t wlb_tfrecord_frame(unsigned char *record, size_t length);

#endif
