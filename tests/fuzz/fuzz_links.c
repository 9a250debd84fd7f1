/* Any report of the links between nodes: refused with a reason, or the node that it leaves out is one of the job's. */
#include <string.h>

#include "coordinator/wlbd/api/attempts/links_body.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

static int is_of_job(const json_t *nodes, const char *name)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (strcmp(json_string_value(json_array_get(nodes, i)), name) == 0)
			return 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	struct wlbd_links_body links;
	const json_t *nodes = NULL;
	char why[WLBD_LINKS_WHY_SIZE] = "";
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_field_names(body, "nodes", WLBD_REQUIRED, WLBD_NODES_MAX, &nodes, &error) == 0 &&
	    wlbd_links_body_read(body, nodes, &links, &error) == 0) {
		const char *worst = wlbd_links_body_worst(&links, nodes, why);
		must(worst == NULL ||
		     (is_of_job(nodes, worst) && strlen(why) > 0 && links.checked + links.can_check > 0));
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
