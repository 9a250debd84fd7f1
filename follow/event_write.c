#include "follow/event_write.h"

#include <string.h>

#include "follow/tfrecord.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* types of protobuf's wire format */
enum { START = 1 };                                       /* SessionLog.SessionStatus */
enum { LENGTH_BYTES = 2 };                                /* of a summary: a varint of two bytes, whatever its value */

/* A scalar takes at most its tag and 10 bytes; an event without scalars takes less than 64. */
_Static_assert(WLB_EVENT_SCALARS_MOST *(WLB_EVENT_TAG_MOST + 10) + 64 + WLB_TFRECORD_FRAME_BYTES <=
                       WLB_EVENT_RECORD_MOST,
               "an event has room in a record");

static void put_varint(struct wlb_event_write *event, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		event->record[event->used++] = (unsigned char)(value | 0x80);
	event->record[event->used++] = (unsigned char)value;
}

static void put_key(struct wlb_event_write *event, int number, int type)
{
	put_varint(event, (uint64_t)(number << 3 | type));
}

static void put_fixed(struct wlb_event_write *event, uint64_t bits, int bytes)
{
	for (int i = 0; i < bytes; i++, bits >>= 8)
		event->record[event->used++] = (unsigned char)bits;
}

static void put_bytes(struct wlb_event_write *event, int number, const void *bytes, size_t length)
{
	put_key(event, number, BYTES);
	put_varint(event, length);
	memcpy(event->record + event->used, bytes, length);
	event->used += length;
}

void wlb_event_begin(struct wlb_event_write *event, double time_s, int64_t step)
{
	uint64_t bits;
	memcpy(&bits, &time_s, sizeof(bits));
	event->used = WLB_TFRECORD_HEAD_BYTES;
	event->summary_at = 0;
	event->scalars = 0;
	put_key(event, 1, FIXED64);
	put_fixed(event, bits, 8);
	put_key(event, 2, VARINT);
	put_varint(event, (uint64_t)step);
}

void wlb_event_set_version(struct wlb_event_write *event)
{
	static const char version[] = "brain.Event:2";
	put_bytes(event, 3, version, sizeof(version) - 1);
}

void wlb_event_set_start(struct wlb_event_write *event)
{
	const unsigned char session_log[] = {1 << 3 | VARINT, START};
	put_bytes(event, 7, session_log, sizeof(session_log));
}

void wlb_event_add(struct wlb_event_write *event, const char *tag, double value)
{
	float narrow = (float)value;
	uint32_t bits;
	size_t tag_bytes = strnlen(tag, WLB_EVENT_TAG_MOST);
	if (event->scalars == WLB_EVENT_SCALARS_MOST)
		return;
	if (event->scalars++ == 0) {
		put_key(event, 5, BYTES);
		event->summary_at = event->used;
		event->used += LENGTH_BYTES;
	}
	put_key(event, 1, BYTES);
	put_varint(event,
	           2 + tag_bytes + 1 + sizeof(bits)); /* the tag with its key and length, and the value with its key */
	put_bytes(event, 1, tag, tag_bytes);
	memcpy(&bits, &narrow, sizeof(bits));
	put_key(event, 2, FIXED32);
	put_fixed(event, bits, sizeof(bits));
}

const unsigned char *wlb_event_end(struct wlb_event_write *event, size_t *bytes)
{
	if (event->scalars > 0) {
		size_t length = event->used - event->summary_at - LENGTH_BYTES;
		event->record[event->summary_at] = (unsigned char)(length | 0x80);
		event->record[event->summary_at + 1] = (unsigned char)(length >> 7);
	}
	*bytes = wlb_tfrecord_frame(event->record, event->used - WLB_TFRECORD_HEAD_BYTES);
	return event->record;
}
