/* Any value of --wlb-on-fault: refused and nothing changed, or values in their bounds whose text parses to the same. */
#include <string.h>

#include "common/on_fault.h"
#include "tests/fuzz/scratch.h"

static int are_equal(const struct wlb_on_fault *a, const struct wlb_on_fault *b)
{
	return a->crash == b->crash && a->hang == b->hang && a->slow == b->slow && a->corrupt == b->corrupt &&
	       a->outliers == b->outliers && a->hang_after_s == b->hang_after_s &&
	       a->slow_by_percent == b->slow_by_percent;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[2 * WLB_ON_FAULT_SIZE], canonical[WLB_ON_FAULT_SIZE], items[WLB_ON_FAULT_SIZE];
	struct wlb_on_fault before, read, again;
	struct wlb_error error = {0};
	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	wlb_on_fault_init(&before);
	wlb_on_fault_init(&read);
	wlb_on_fault_init(&again);
	if (wlb_on_fault_parse(text, &read, &error) < 0) {
		must(error.message[0] != '\0' && are_equal(&read, &before));
		return 0;
	}
	must(read.hang_after_s >= 2 && read.hang_after_s <= 3600);
	must(read.slow_by_percent >= 1 && read.slow_by_percent <= 1000);
	wlb_on_fault_text(&read, canonical, sizeof(canonical));
	must(strlen(canonical) < sizeof(canonical) - 1);
	must(wlb_on_fault_parse(canonical, &again, &error) == 0 && are_equal(&read, &again));
	must(wlb_on_fault_items(text, items, sizeof(items), &error) == 0);
	must(wlb_on_fault_parse(items, &before, &error) == 0 && are_equal(&read, &before));
	return 0;
}
