/* Any body of stacks: refused with a reason, or stored as text that is accepted again and stays the same. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/stacks_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

/* Decided by attempt_nodes.c, which is not linked. */
bool wlbd_attempt_nodes_may_have(const struct wlbd_attempt_nodes *nodes, const char *node)
{
	return nodes != NULL && node[0] != '\0';
}

bool wlbd_attempt_nodes_may_run(const struct wlbd_attempt_nodes *nodes, const char *node, int64_t rank)
{
	return nodes != NULL && node[0] != '\0' && rank < 4;
}

static void check_again(json_t *body, const char *text)
{
	struct wlbd_stacks_body stacks;
	struct wlb_error error = {0};
	json_object_set_new(body, "ranks", json_loads(text, 0, NULL));
	must(wlbd_stacks_read(body, &stacks, &error) == 0);
	char *again = wlbd_stacks_text(&stacks);
	must(again != NULL && strcmp(again, text) == 0);
	free(again);
	for (const char *c = text; *c != '\0'; c++)
		must(*c >= ' ' && *c <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	struct wlbd_stacks_body stacks;
	struct wlbd_attempt_nodes nodes = {0};
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_stacks_read(body, &stacks, &error) == 0) {
		must(json_array_size(stacks.ranks) <= WLBD_STACKS_RANKS_MAX && stacks.stacks_id > 0);
		wlbd_stacks_belong(&stacks, &nodes, &error);
		char *text = wlbd_stacks_text(&stacks);
		must(text != NULL);
		check_again(body, text);
		free(text);
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
