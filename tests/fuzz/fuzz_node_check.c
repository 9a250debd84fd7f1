/* Any body of a check of a node: refused with a reason, or within its bounds and printable. */
#include <string.h>

#include "coordinator/wlbd/api/calibrations/node_check_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	struct wlbd_node_check check;
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_node_check_read(body, &check, &error) == 0) {
		must(strlen(check.node) > 0 && strlen(check.node) <= WLBD_NAME_MAX);
		must(strlen(check.reason) <= WLBD_NODE_CHECK_TEXT_MAX && strpbrk(check.reason, "\n\t\033") == NULL);
		must(check.healthy == (check.reason[0] == '\0') && (check.healthy || !check.clears));
		must(json_array_size(check.checks) <= WLBD_NODE_CHECKS_MAX);
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
