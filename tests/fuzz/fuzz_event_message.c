/* Any bytes as an event of TensorBoard, and as a file of its records: the values are in their bounds, and every record
 * that can be passed over has bytes. */
#include <string.h>

#include "follow/event_message.h"
#include "follow/tfrecord.h"
#include "tests/fuzz/scratch.h"

static void read_event(const unsigned char *data, size_t bytes)
{
	struct wlb_followed record;
	int count = wlb_event_message_read(data, bytes, "train/", &record);
	must(record.count >= 0 && record.count <= WLB_FOLLOWED_VALUES_MOST);
	must(count == -1 || count == record.count);
	must(record.step >= 0 && record.step <= WLB_FOLLOWED_STEP_MOST);
	must(record.time_s >= 0 && record.time_s < 1e11);
	for (int i = 0; i < record.count; i++)
		must(strlen(record.values[i].name) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_tfrecord record;
	read_event(data, bytes);
	for (size_t at = 0; at < bytes;) {
		enum wlb_tfrecord_result result = wlb_tfrecord_read(data + at, bytes - at, &record);
		must((record.bytes > 0) == (result != WLB_TFRECORD_PART && result != WLB_TFRECORD_DAMAGED_LENGTH));
		if (result == WLB_TFRECORD_DATA)
			read_event(record.data, record.length);
		if (record.bytes == 0 || record.bytes > (int64_t)(bytes - at))
			break;
		at += (size_t)record.bytes;
	}
	return 0;
}
