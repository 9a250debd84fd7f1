/* Any line as one of a rank's file of spans: refused with a reason, or in its bounds and with names that JSON need not
 * escape. */
#include <math.h>
#include <string.h>

#include "coordinator/wlb/trace/span_line.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	struct wlb_span_line line;
	if (wlb_span_line_read((const char *)data, bytes, &line, &error) < 0) {
		must(error.message[0] != '\0');
		return 0;
	}
	must(line.rank >= 0 && line.rank <= WLB_SPAN_RANK_MOST && line.name[0] != '\0');
	if (line.kind == WLB_SPAN_RANK) {
		must(line.ranks > line.rank && line.ranks <= WLB_SPAN_RANK_MOST + 1 && line.node[0] != '\0');
		return 0;
	}
	must(line.track >= 0 && line.track <= WLB_SPAN_TRACK_MOST && strpbrk(line.name, "\"\\\n") == NULL);
	must(line.kind == WLB_SPAN_TRACK || (line.at_us >= 0 && line.at_us <= WLB_SPAN_US_MOST && line.took_us >= 0 &&
	                                     line.took_us <= WLB_SPAN_US_MOST && line.step >= 0));
	return 0;
}
